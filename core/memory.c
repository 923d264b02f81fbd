#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "core/memory.h"

#include "core/file/system_text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A line of /proc/meminfo: "MemTotal:       24689764 kB". */
static double of_line(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at != NULL ? strtod(at + strlen(key), NULL) * 1024 : 0;
}

bm_memory bm_memory_read(void)
{
    char text[8192];
    bm_memory m = {0};

    if (bm_system_text("/sys/fs/cgroup/memory.max", text, sizeof text))
        m.limit = strtod(text, NULL); /* "max": 0 */
    if (!bm_system_text("/proc/meminfo", text, sizeof text))
        return m;
    m.total = of_line(text, "MemTotal:");
    m.available = of_line(text, "MemAvailable:");
    m.swap = of_line(text, "SwapFree:");
    return m;
}

double bm_memory_room(void)
{
    bm_memory m = bm_memory_read();
    double room = m.available > 0 ? m.available + m.swap : 0;

    return m.limit > 0 && (room == 0 || m.limit < room) ? m.limit : room;
}

bm_status bm_memory_check(double bytes, const char *what, const char *remedy)
{
    double room = bm_memory_room();

    if (room == 0 || bytes <= room)
        return BM_OK;
    return BM_FAIL(BM_ERR_MEMORY,
                   "%s need %.3g GB of memory, and %.3g GB are free; %s", what,
                   1e-9 * bytes, 1e-9 * room, remedy);
}

bm_status bm_address_space_check(const char *who, int mb)
{
    size_t size = (size_t)mb << 20;
    void *room = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return BM_FAIL(BM_ERR_MEMORY,
                       "%s needs %d MB of address space; raise the limit "
                       "(ulimit -v)",
                       who, mb);
    munmap(room, size);
    return BM_OK;
}
