/*
 * shared_memory.c - an anonymous file in memory for each rank, which the other
 * ranks of its host open under /proc. An MPI window reserves no pages, so that a
 * small /dev/shm ends the program; see docs/decisions/7-shared-window.md.
 */
#define _GNU_SOURCE /* memfd_create */
#include "comm/shared_memory.h"

#include "core/file/file.h"
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

/* The path and the identity of a rank's file. */
typedef struct place {
    int64_t pid, fd, device, inode, size;
} place;

enum { COLUMNS = sizeof(place) / sizeof(int64_t) };

typedef struct segment {
    void *x; /* NULL: not shared with this rank */
    size_t size;
} segment;

struct bm_shared_memory {
    int rank, size;
    bool shared;
    void *own;        /* own segment that is not shared */
    segment *segment; /* [size] */
};

/* A file of zeros. All its pages are reserved: no later write can fail. */
static bm_status make(size_t size, int *fd)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    int error = 0;

    getrlimit(RLIMIT_FSIZE, &most);
    if (most.rlim_cur < size)
        return BM_FAIL(BM_ERR_MEMORY, "files are limited to %llu bytes",
                       (unsigned long long)most.rlim_cur);
    *fd = memfd_create("bmuf", MFD_CLOEXEC);
    error = *fd < 0 ? errno : bm_file_reserve(*fd, (off_t)size);
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

/* The identity is compared, since in another container the pid may be that of
 * another process. */
static bm_status reach(const place *p, segment *out)
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
    *out = (segment){x, (size_t)p->size};
done:
    close(fd);
    return status;
}

static void unmap(bm_shared_memory *w)
{
    for (int r = 0; r < w->size; r++) {
        if (w->segment[r].x != NULL && w->segment[r].x != w->own)
            munmap(w->segment[r].x, w->segment[r].size);
        w->segment[r] = (segment){0};
    }
}

/* Collective. Makes this rank's file and maps those of its host. *why: this
 * rank's failure; memory is shared if there is none on any rank. */
static bm_status share(bm_shared_memory *w, bm_comm *comm, size_t size,
                       place *table, bm_status *why)
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
            *why = reach(&table[r], &w->segment[r]);
    failed = *why != BM_OK;
    if (status == BM_OK)
        status = bm_comm_max(comm, &failed, 1);
    w->shared = !failed;
    if (fd >= 0)
        close(fd); /* every rank that needs it has mapped it */
    return status;
}

static bool alone_everywhere(const bm_comm *comm)
{
    for (int r = 0; r < bm_comm_size(comm); r++)
        if (bm_comm_host(comm, r) != r)
            return false;
    return true;
}

static void warn(const bm_comm *comm, bm_status own)
{
    static bool warned;

    if (bm_comm_rank(comm) == 0 && !warned)
        bm_log(BM_WARNING,
               "ranks of one host cannot share memory%s%s; they send messages "
               "instead: slower, with the same bits",
               own != BM_OK ? ", " : "", own != BM_OK ? bm_last_message() : "");
    warned = true;
}

static bm_status keep_private(bm_shared_memory *w, size_t size)
{
    unmap(w);
    w->own = calloc(size + 1, 1);
    if (w->own == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes", size);
    w->segment[w->rank] = (segment){w->own, size};
    return BM_OK;
}

bm_status bm_shared_memory_open(bm_shared_memory **out, bm_comm *comm,
                                size_t size)
{
    size_t ranks = (size_t)bm_comm_size(comm);
    bm_shared_memory *w = calloc(1, sizeof *w);
    place *table = calloc(ranks, sizeof *table);
    bm_status status = BM_OK, why = BM_OK;

    if (w != NULL)
        w->segment = calloc(ranks, sizeof *w->segment);
    if (w == NULL || w->segment == NULL || table == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for what ranks share");
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_ASSERT(w != NULL && w->segment != NULL && table != NULL); /* agreed */
    w->rank = bm_comm_rank(comm);
    w->size = bm_comm_size(comm);
    if (!alone_everywhere(comm)) {
        BM_TRY_DONE(share(w, comm, size, table, &why));
        if (!w->shared)
            warn(comm, why);
    }
    if (!w->shared)
        status = keep_private(w, size);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    *out = w;
    w = NULL;
done:
    bm_shared_memory_close(w);
    free(table);
    return status;
}

void bm_shared_memory_close(bm_shared_memory *w)
{
    if (w == NULL)
        return;
    if (w->segment != NULL)
        unmap(w);
    free(w->segment);
    free(w->own);
    free(w);
}

void *bm_shared_memory_segment(const bm_shared_memory *w, int rank)
{
    return w->segment[rank].x;
}

bool bm_shared_memory_available(const bm_shared_memory *w)
{
    return w->shared;
}
