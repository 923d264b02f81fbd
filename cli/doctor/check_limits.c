/* check_limits.c - limits of processes, room for temporary files and shared
 * memory, large pages. */
#include "cli/doctor/check.h"
#include "cli/doctor/limits.h"
#include "cli/launch/scratch.h"
#include "core/file/system_text.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { SHM_MB = 64 };

/* Registered memory: for InfiniBand only. */
static void check_locked(bm_check_context *e)
{
    static const bm_limit locked = {"locked memory",
                                    RLIMIT_MEMLOCK,
                                    1 << 20,
                                    " MB",
                                    0,
                                    1024,
                                    "InfiniBand sends from locked memory",
                                    "ulimit -l unlimited"};
    char text[256];
    DIR *cards = opendir("/sys/class/infiniband");

    if (cards == NULL)
        return;
    closedir(cards);
    bm_limit_text(&locked, text, sizeof text);
    if (bm_limit_now(&locked) < locked.enough)
        bm_find(e, BM_DOUBTFUL, locked.remedy, "%s", text);
}

static void check_scratch(bm_check_context *e)
{
    bm_scratch_folder scratch;

    if (bm_scratch_folder_open(&scratch, 1) != BM_OK)
        bm_find(e, BM_FATAL, "", "%s", bm_last_message());
    else
        bm_scratch_folder_close(&scratch);
}

static void check_shm(bm_check_context *e)
{
    struct statvfs info;
    double mb = 0;

    if (statvfs("/dev/shm", &info) != 0) {
        bm_find(e, BM_DOUBTFUL, "mount -t tmpfs shm /dev/shm, as root",
                "there is no /dev/shm: NCCL and a plain mpirun cannot share "
                "memory");
        return;
    }
    mb = (double)info.f_bavail * (double)info.f_frsize / (1 << 20);
    json_object_set_new(e->facts, "shm_mb", json_real(mb));
    if (mb < SHM_MB)
        bm_find(e, BM_DOUBTFUL,
                "mount -o remount,size=1G /dev/shm as root, or docker run "
                "--shm-size=1g",
                "/dev/shm: %.0f MB are free; NCCL and a plain mpirun share "
                "memory there and may need %d MB or more (with -n ranks use "
                "TMPDIR)",
                mb, SHM_MB);
}

static void note_pages(bm_check_context *e)
{
    char text[8192];
    const char *at = NULL;

    if (bm_system_text("/sys/kernel/mm/transparent_hugepage/enabled", text,
                       sizeof text)) {
        json_object_set_new(e->facts, "transparent_hugepages",
                            json_string(text));
        if (strstr(text, "[never]") != NULL)
            bm_find(e, BM_FINE,
                    "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled "
                    "as root may gain a few percent",
                    "large pages are off");
    }
    if (bm_system_text("/proc/meminfo", text, sizeof text) &&
        (at = strstr(text, "HugePages_Total:")) != NULL)
        json_object_set_new(e->facts, "hugepages",
                            json_integer(strtol(at + 16, NULL, 10)));
}

static void host(bm_check_context *e)
{
    bool all_enough = true;
    char text[256];

    for (const bm_limit *l = bm_limits; l->name != NULL; l++) {
        double now = bm_limit_now(l);

        if (isfinite(now))
            json_object_set_new(e->facts, l->name, json_real(now));
        if (now >= l->enough)
            continue;
        all_enough = false;
        bm_limit_text(l, text, sizeof text);
        bm_find(e, now < l->least ? BM_FATAL : BM_DOUBTFUL, l->remedy, "%s",
                text);
    }
    if (all_enough)
        bm_find(e, BM_FINE, "", "limits of processes are high enough");
    check_locked(e);
    check_scratch(e);
    check_shm(e);
    note_pages(e);
}

const bm_check bm_check_limits = {
    .name = "limits",
    .help = "open files, processes, stack, locked memory, TMPDIR, /dev/shm, "
            "large pages",
    .seconds = 10,
    .host = host,
};
