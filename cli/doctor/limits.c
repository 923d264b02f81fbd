#define _DEFAULT_SOURCE /* RLIMIT_NPROC, RLIMIT_MEMLOCK */
#include "cli/doctor/limits.h"

#include "core/log.h"
#include "core/text/words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>

#define FILES_CONF "for good in /etc/security/limits.conf"

const bm_limit bm_limits[] = {
    {"open files", RLIMIT_NOFILE, 1, "", 64, 1024,
     "mpirun needs 64 or more, and a shard is a file",
     "ulimit -n 4096, " FILES_CONF},
    {"processes and threads", RLIMIT_NPROC, 1, "", 0, 256,
     "ranks have threads that compute, read and exchange",
     "ulimit -u 4096, " FILES_CONF},
    {"the stack", RLIMIT_STACK, 1 << 20, " MB", 0, 1,
     "libraries keep buffers on it", "ulimit -s 8192"},
    {"the size of files", RLIMIT_FSIZE, 1 << 30, " GB", 0, 16,
     "memory that ranks share and checkpoints are files",
     "ulimit -f unlimited"},
    {"the address space", RLIMIT_AS, 1 << 30, " GB", 0, 16,
     "models, mini-batches and shared memory count in it",
     "ulimit -v unlimited"},
    {0},
};

double bm_limit_now(const bm_limit *l)
{
    struct rlimit now;

    if (getrlimit((__rlimit_resource_t)l->resource, &now) != 0 ||
        now.rlim_cur == RLIM_INFINITY)
        return INFINITY;
    return (double)now.rlim_cur / l->unit;
}

void bm_limit_text(const bm_limit *l, char *out, size_t room)
{
    snprintf(out, room, "%s: limited to %.3g%s; %s", l->name, bm_limit_now(l),
             l->unit_name, l->why);
}

/* Measured with Open MPI 4.1.4: 36 files for 2 ranks, 48 for 4, 64 for 8. */
bm_status bm_limits_check(long ranks)
{
    const bm_limit *files = &bm_limits[0];
    double least = 28 + 4 * (double)ranks, most = least + 4;
    double now = bm_limit_now(files);

    if (now < least)
        return BM_FAIL(BM_ERR_COMM,
                       "open files: limited to %.0f, but mpirun needs %.0f or "
                       "more for %s; %s",
                       now, least, bm_count_noun(ranks, "rank").text,
                       files->remedy);
    if (now < most)
        bm_log(BM_WARNING,
               "open files: limited to %.0f, but mpirun needs up to %.0f for "
               "%s; %s",
               now, most, bm_count_noun(ranks, "rank").text, files->remedy);
    return BM_OK;
}
