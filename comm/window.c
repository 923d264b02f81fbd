/*
 * window.c - a nameless file in memory for each rank, which the others of its
 * host find under /proc. docs/decisions/7-shared-window.md says why it is not
 * MPI's window: that one reserves no pages, and a small /dev/shm kills.
 */
#define _GNU_SOURCE /* memfd_create */
#include "comm/window.h"

#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a rank's file is to be found, and which one it is. */
typedef struct place {
    int64_t pid, fd, device, inode, size;
} place;

enum { COLUMNS = sizeof(place) / sizeof(int64_t) };

typedef struct part {
    void *x; /* NULL: out of reach */
    size_t size;
} part;

struct bm_window {
    int rank, size;
    bool shared;
    void *own;  /* what is not shared */
    part *part; /* [size] */
};

/* A file of zeros, with all its pages: none is missing when it is written. */
static bm_status make(size_t size, int *fd)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    int error = 0;

    getrlimit(RLIMIT_FSIZE, &most);
    if (most.rlim_cur < size)
        return BM_FAIL(BM_ERR_MEMORY, "files are limited to %llu bytes",
                       (unsigned long long)most.rlim_cur);
    *fd = memfd_create("bmuf", MFD_CLOEXEC);
    error = *fd < 0 ? errno : posix_fallocate(*fd, 0, (off_t)size);
    return error == 0 ? BM_OK : BM_FAIL(BM_ERR_MEMORY, "%s", strerror(error));
}

static bm_status describe(int fd, place *out)
{
    struct stat what;

    if (fstat(fd, &what) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "%s", strerror(errno));
    *out = (place){getpid(), fd, (int64_t)what.st_dev, (int64_t)what.st_ino,
                   (int64_t)what.st_size};
    return BM_OK;
}

/* The same number may be another process, seen from another container. */
static bm_status reach(const place *p, part *out)
{
    char path[64];
    place found = {0};
    void *x = MAP_FAILED;
    int fd = -1;
    bm_status status = BM_OK;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)p->pid,
             (long long)p->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return BM_FAIL(BM_ERR_MEMORY, "%s: %s", path, strerror(errno));
    BM_TRY_DONE(describe(fd, &found));
    if (found.device != p->device || found.inode != p->inode)
        BM_FAIL_DONE(BM_ERR_MEMORY, "%s is another file", path);
    x = mmap(NULL, (size_t)p->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (x == MAP_FAILED)
        BM_FAIL_DONE(BM_ERR_MEMORY, "%s: %s", path, strerror(errno));
    *out = (part){x, (size_t)p->size};
done:
    close(fd);
    return status;
}

static void let_go(bm_window *w)
{
    for (int r = 0; r < w->size; r++) {
        if (w->part[r].x != NULL && w->part[r].x != w->own)
            munmap(w->part[r].x, w->part[r].size);
        w->part[r] = (part){0};
    }
}

/* Collective. Each rank's file, and those of its host that all could map.
 * *why: what this rank could not do. */
static bm_status share(bm_window *w, bm_comm *comm, size_t size, place *table,
                       bm_status *why)
{
    int fd = -1, failed = 0;
    bm_status status = BM_OK;

    *why = size > 0 ? make(size, &fd) : BM_OK;
    if (size > 0 && *why == BM_OK)
        *why = describe(fd, &table[w->rank]);
    status = bm_comm_sum_ints(comm, &table[0].pid, COLUMNS * (size_t)w->size);
    for (int r = 0; r < w->size && status == BM_OK && *why == BM_OK; r++)
        if (bm_comm_host(comm, r) == bm_comm_host(comm, w->rank) &&
            table[r].size > 0)
            *why = reach(&table[r], &w->part[r]);
    failed = *why != BM_OK;
    if (status == BM_OK)
        status = bm_comm_max(comm, &failed, 1);
    w->shared = !failed;
    if (fd >= 0)
        close(fd); /* all who need it have mapped it */
    return status;
}

static bool alone_everywhere(const bm_comm *comm)
{
    for (int r = 0; r < bm_comm_size(comm); r++)
        if (bm_comm_host(comm, r) != r)
            return false;
    return true;
}

static void tell(const bm_comm *comm, bm_status own)
{
    static bool told;

    if (bm_comm_rank(comm) == 0 && !told)
        bm_log(BM_WARNING,
               "ranks of one host cannot share memory%s%s: they send messages, "
               "which is slower, but gives the same bits",
               own != BM_OK ? ", " : "", own != BM_OK ? bm_last_message() : "");
    told = true;
}

static bm_status keep_to_itself(bm_window *w, size_t size)
{
    let_go(w);
    w->own = calloc(size + 1, 1);
    if (w->own == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes", size);
    w->part[w->rank] = (part){w->own, size};
    return BM_OK;
}

bm_status bm_window_open(bm_window **out, bm_comm *comm, size_t size)
{
    size_t ranks = (size_t)bm_comm_size(comm);
    bm_window *w = calloc(1, sizeof *w);
    place *table = calloc(ranks, sizeof *table);
    bm_status status = BM_OK, why = BM_OK;

    if (w != NULL)
        w->part = calloc(ranks, sizeof *w->part);
    if (w == NULL || w->part == NULL || table == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a window");
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_ASSERT(w != NULL && w->part != NULL && table != NULL); /* agreed */
    w->rank = bm_comm_rank(comm);
    w->size = bm_comm_size(comm);
    if (!alone_everywhere(comm)) {
        BM_TRY_DONE(share(w, comm, size, table, &why));
        if (!w->shared)
            tell(comm, why);
    }
    if (!w->shared)
        status = keep_to_itself(w, size);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    *out = w;
    w = NULL;
done:
    bm_window_close(w);
    free(table);
    return status;
}

void bm_window_close(bm_window *w)
{
    if (w == NULL)
        return;
    if (w->part != NULL)
        let_go(w);
    free(w->part);
    free(w->own);
    free(w);
}

void *bm_window_segment(const bm_window *w, int rank)
{
    return w->part[rank].x;
}

bool bm_window_shared(const bm_window *w)
{
    return w->shared;
}
