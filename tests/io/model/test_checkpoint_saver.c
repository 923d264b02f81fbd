/*
 * Checkpoints that are written while training goes on: they hold the states as
 * they were, whatever becomes of these meanwhile; and a disk that fails at any
 * system call leaves the older file, or the copy in another folder.
 */
#include "io/model/checkpoint_saver.h"
#include "tests/support/checkpoints.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a disk that fails --------------------------------------------------- */

enum call { OPEN, RESERVE, WRITE, SYNC, READ, RENAME, CALLS };

/* Call number `left` from here, on a file whose path has `where`, fails. */
static struct fault {
    enum call call;
    int left; /* negative: none */
    int error;
    const char *where, *folder; /* or that is this folder */
    bool struck;
} fault = {.left = -1};

static atomic_bool waiting, released; /* fsync is to wait; it may go on */
static int flip_at = -1;              /* in so many bytes a bit is flipped */

static bool concerns(const char *path)
{
    return strcmp(path, fault.folder) == 0 ||
           (strstr(path, ".tmp") != NULL && strstr(path, fault.where) != NULL);
}

static const char *path_of(int fd)
{
    static char path[4096];
    char link[64];
    ssize_t n = 0;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return path;
}

static bool strikes(enum call call, const char *path)
{
    if (fault.left < 0 || call != fault.call || !concerns(path) ||
        fault.left-- > 0)
        return false;
    fault.struck = true;
    errno = fault.error;
    return true;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    mode_t mode = 0;

    va_start(more, flags);
    if (flags & O_CREAT)
        mode = va_arg(more, mode_t);
    va_end(more);
    return strikes(OPEN, path) ? -1 : __real_open(path, flags, mode);
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
    if (strikes(RESERVE, path_of(fd)))
        return fault.error;
    return __real_posix_fallocate(fd, offset, size);
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    char *other = NULL;
    ssize_t n = 0;

    if (strikes(WRITE, path_of(fd)))
        return -1;
    if (flip_at < 0 || (size_t)flip_at >= size) {
        flip_at -= flip_at < 0 ? 0 : (int)size;
        return __real_write(fd, data, size);
    }
    other = malloc(size);
    assert_non_null(other);
    memcpy(other, data, size);
    other[flip_at] = (char)(other[flip_at] ^ 4);
    flip_at = -1;
    n = __real_write(fd, other, size);
    free(other);
    return n;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    return strikes(READ, path_of(fd)) ? -1 : __real_read(fd, data, size);
}

int __wrap_fsync(int fd)
{
    static const struct timespec a_moment = {0, 1000000};

    for (int i = 0; i < 20000 && waiting && !released; i++)
        nanosleep(&a_moment, NULL);
    return strikes(SYNC, path_of(fd)) ? -1 : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    return strikes(RENAME, from) ? -1 : __real_rename(from, to);
}

/* ---- while training goes on ---------------------------------------------- */

static const bm_retention all = {.newest = 100};

static void test_states_may_change_while_they_are_written(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "block-00000001.safetensors");
    bm_comm *comm = NULL;
    bm_saver *saver = NULL;
    bm_saver_report report = {.copied = 0};
    bm_state states[VECTORS];
    bm_params params = network_of(N);

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t n = lay_out(SLICES, comm, N, states);
    bm_checkpoint c = describe_checkpoint(&params, states, n);
    bm_traffic before = bm_comm_traffic(comm);
    fill_parts(states, n);
    assert_ok(bm_saver_open(&saver, comm));
    waiting = true;
    released = false;
    assert_ok(bm_saver_start(saver, BM_ONE_PATH(path), &c, &all, true));
    assert_true(bm_saver_pending(saver));
    for (size_t i = 0; i < n; i++)
        memset(states[i].x, 0, states[i].count * sizeof(float));
    assert_false(bm_saver_done(saver)); /* no rank is done before rank 0 */
    assert_int_not_equal(access(path, F_OK), 0);
    assert_ok(bm_comm_barrier(comm));
    released = true;
    assert_ok(bm_saver_wait(saver, &report));
    waiting = false;
    assert_int_equal(bm_comm_traffic(comm).sent, before.sent);
    assert_false(bm_saver_pending(saver));
    if (bm_comm_rank(comm) == 0)
        assert_true(report.saved.bytes > 0 && report.saved.verify_s > 0);
    assert_true(report.copied > 0);
    load_as(WHOLE, comm, path, N);
    /* the next one, without a copy */
    fill_parts(states, n);
    assert_ok(bm_saver_start(saver, BM_ONE_PATH(path), &c, &all, false));
    assert_true(bm_saver_done(saver));
    assert_ok(bm_saver_wait(saver, &report));
    assert_int_equal(report.copied, 0);
    load_as(WHOLE, comm, path, N);
    bm_saver_close(saver);
    free_parts(states, n);
    bm_comm_close(comm);
    leave_scratch(&s);
}

/* One that is not finite fails on all ranks, when it is waited for. */
static void test_a_failure_of_the_writer_comes_with_the_wait(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "block-00000001.safetensors");
    bm_comm *comm = NULL;
    bm_saver *saver = NULL;
    bm_saver_report report = {.copied = 0};
    bm_state states[VECTORS];
    bm_params params = network_of(N);

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t n = lay_out(SLICES, comm, N, states);
    bm_checkpoint c = describe_checkpoint(&params, states, n);
    fill_parts(states, n);
    if (bm_comm_rank(comm) == bm_comm_size(comm) - 1)
        states[n - 1].x[0] /= 0.F;
    assert_ok(bm_saver_open(&saver, comm));
    assert_ok(bm_saver_start(saver, BM_ONE_PATH(path), &c, &all, true));
    assert_int_equal(bm_saver_wait(saver, &report), BM_ERR_NUMERIC);
    assert_non_null(strstr(bm_last_message(), "is NaN or infinite"));
    assert_int_equal(bm_comm_agreed(comm), 0); /* one rank reports it */
    assert_int_equal(scratch_count(&s, false), 0);
    bm_saver_close(saver);
    free_parts(states, n);
    bm_comm_close(comm);
    leave_scratch(&s);
}

/* ---- failing disks ------------------------------------------------------- */

static bm_status save_to(bm_comm *comm, const char *const *paths, bool behind,
                         bm_saved *out)
{
    bm_state states[VECTORS];
    bm_params params = network_of(N);
    size_t n = lay_out(WHOLE, comm, N, states);
    bm_checkpoint c = describe_checkpoint(&params, states, n);
    bm_saver *saver = NULL;
    bm_saver_report report = {.copied = 0};
    bm_status status = BM_OK;

    fill_parts(states, n);
    assert_ok(bm_saver_open(&saver, comm));
    assert_ok(bm_saver_start(saver, paths, &c, &all, behind));
    status = bm_saver_wait(saver, &report);
    *out = report.saved;
    bm_saver_close(saver);
    free_parts(states, n);
    return status;
}

/* What failed: each call in turn with each error; returns how many. */
static int for_each_fault(bm_comm *comm, const char *where, const char *folder,
                          void (*try)(bm_comm *comm, void *self), void *self)
{
    static const int errors[] = {EIO, ENOSPC};
    int n = 0;

    FOR_EACH (e, errors)
        for (int call = 0; call < CALLS; call++)
            for (int k = 0;; k++) {
                fault = (struct fault){(enum call)call, k,      errors[e],
                                       where,           folder, false};
                try(comm, self);
                fault.left = -1;
                if (!fault.struck)
                    break;
                n++;
            }
    return n;
}

typedef struct folders {
    const char *old, *new, *copy;
    const scratch *s, *other;
} folders;

static void fail_once(bm_comm *comm, void *self)
{
    const folders *f = self;
    bm_saved saved = {0};
    bm_status status =
        save_to(comm, BM_ONE_PATH(f->new), fault.left % 2 == 0, &saved);

    if (fault.struck && fault.call != RESERVE)
        assert_true(bm_disk_failed(status));
    else if (!fault.struck || fault.error == EIO) /* reserving may fail */
        assert_ok(status);
    load_as(WHOLE, comm, f->old, N);
    if (access(f->new, F_OK) == 0)
        load_as(WHOLE, comm, f->new, N);
    else
        assert_true(status != BM_OK);
    (void)unlink(f->new);
    assert_int_equal(scratch_count(f->s, false), 1); /* no temporary file */
}

static void test_a_disk_that_fails_at_any_call_leaves_the_older_file(void **_)
{
    scratch s = scratch_open();
    bm_comm *comm = NULL;
    char old[200], new[200];
    folders f = {.old = old, .new = new, .s = &s};
    int n = 0;

    (void)_;
    assert_ok(bm_comm_open_alone(&comm));
    bm_checkpoint_path(s.path, 1, old, sizeof old);
    bm_checkpoint_path(s.path, 2, new, sizeof new);
    save_as(WHOLE, comm, old, N);
    n = for_each_fault(comm, "block-00000002", s.path, fail_once, &f);
    print_message("%d system calls failed\n", n);
    assert_true(n >= 2 * (1 + 1 + 8 + 1 + 1 + 1));
    bm_comm_close(comm);
    scratch_close(&s);
}

static void fail_in_one_folder(bm_comm *comm, void *self)
{
    const folders *f = self;
    const char *const paths[] = {f->new, f->copy, NULL};
    bm_saved saved = {0};

    assert_ok(save_to(comm, paths, fault.left % 2 == 0, &saved));
    if (fault.struck && fault.call != RESERVE) {
        assert_int_equal(saved.lost, 1);
        assert_int_equal(saved.which, 1);
        assert_true(saved.why[0] != '\0');
    }
    if (saved.lost == 0)
        assert_same_bytes(f->new, f->copy);
    load_as(WHOLE, comm, f->copy, N);
    (void)unlink(f->new);
    (void)unlink(f->copy);
    assert_int_equal(scratch_count(f->s, false), 0);
    assert_int_equal(scratch_count(f->other, false), 0);
}

static void test_a_copy_is_written_while_the_other_disk_fails(void **_)
{
    scratch s = scratch_open(), other = scratch_open();
    bm_comm *comm = NULL;
    char new[200], copy[200];
    folders f = {.new = new, .copy = copy, .s = &s, .other = &other};

    (void)_;
    assert_ok(bm_comm_open_alone(&comm));
    bm_checkpoint_path(s.path, 2, new, sizeof new);
    bm_checkpoint_path(other.path, 2, copy, sizeof copy);
    assert_true(for_each_fault(comm, s.path, s.path, fail_in_one_folder, &f) >
                20);
    bm_comm_close(comm);
    scratch_close(&s);
    scratch_close(&other);
}

/* At any byte of the file. */
static void test_a_bit_that_the_disk_gets_wrong_is_found_at_once(void **_)
{
    scratch s = scratch_open();
    bm_comm *comm = NULL;
    char path[200];
    struct stat info;
    bm_saved saved = {0};

    (void)_;
    assert_ok(bm_comm_open_alone(&comm));
    bm_checkpoint_path(s.path, 1, path, sizeof path);
    save_as(WHOLE, comm, path, N);
    assert_int_equal(stat(path, &info), 0);
    for (int at = 0; at < (int)info.st_size; at += 97) {
        flip_at = at;
        assert_int_equal(save_to(comm, BM_ONE_PATH(path), false, &saved),
                         BM_ERR_IO);
        assert_int_equal(flip_at, -1);
        assert_non_null(
            strstr(bm_last_message(), "its bytes on the disk are others"));
    }
    load_as(WHOLE, comm, path, N);
    assert_int_equal(scratch_count(&s, false), 1);
    bm_comm_close(comm);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states_may_change_while_they_are_written),
        cmocka_unit_test(test_a_failure_of_the_writer_comes_with_the_wait),
        cmocka_unit_test(
            test_a_disk_that_fails_at_any_call_leaves_the_older_file),
        cmocka_unit_test(test_a_copy_is_written_while_the_other_disk_fails),
        cmocka_unit_test(test_a_bit_that_the_disk_gets_wrong_is_found_at_once),
    };
    return RUN_GROUP_MPI("checkpoint_saver", tests);
}
