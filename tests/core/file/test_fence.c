/*
 * Two processes at one directory: locks, file systems without locks, and what is
 * left of an earlier attempt.
 */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/file/fence.h"
#include "core/file/file.h"
#include "core/file/file_lock.h"
#include "core/log.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the fence ----------------------------------------------------------- */

static void test_attempts_are_numbered(void **_)
{
    scratch s = scratch_open();
    char own[BM_FENCE_ROOM], host[100] = "", expected[200];

    (void)_;
    assert_ok(bm_fence_begin(s.path, 1, own));
    assert_int_equal(bm_fence_number(own), 1);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(expected, sizeof expected, "1 %s %ld", host, (long)getpid());
    assert_string_equal(own, expected);
    assert_ok(bm_fence_begin(s.path, 1, own));
    assert_int_equal(bm_fence_number(own), 2);
    assert_ok(bm_fence_begin(s.path, 7, own)); /* starts in the journal */
    assert_int_equal(bm_fence_number(own), 7);
    assert_ok(bm_fence_begin(s.path, 3, own));
    assert_int_equal(bm_fence_number(own), 8);
    scratch_close(&s);
}

static void test_a_damaged_number_is_none(void **_)
{
    static const char *const texts[] = {"", "x", "-3 host 1", "99999999999999"};

    (void)_;
    FOR_EACH (i, texts)
        assert_int_equal(bm_fence_number(texts[i]), 0);
}

static void assert_content(const char *path, const char *expected)
{
    size_t n = 0;
    char *text = slurp(path, &n);

    assert_string_equal(text, expected);
    free(text);
}

static void test_an_earlier_attempt_writes_nothing(void **_)
{
    scratch s = scratch_open();
    char path[100], journal[100], own[BM_FENCE_ROOM], later[BM_FENCE_ROOM];
    bm_file_replacement open_file;
    bm_journal *j = NULL;
    size_t n = 0;
    char *lines = NULL;

    (void)_;
    snprintf(path, sizeof path, "%s", scratch_file(&s, "checkpoint"));
    snprintf(journal, sizeof journal, "%s", scratch_file(&s, "journal"));
    assert_ok(bm_fence_begin(s.path, 1, own));
    bm_fence_join(s.path, own);
    assert_ok(bm_fence_check());
    assert_ok(bm_file_write(path, "mine", 4));
    assert_ok(bm_journal_open(&j, journal));
    bm_journal_write(j, "block", (bm_field[]){{0}});
    assert_ok(bm_file_replace_begin(&open_file, path));
    assert_ok(bm_file_replace_write(&open_file, "ghost", 5));

    bm_fence_leave(); /* the supervisor */
    assert_ok(bm_fence_begin(s.path, 1, later));
    bm_fence_join(s.path, own);
    assert_int_equal(bm_fence_check(), BM_ERR_COMM);
    assert_non_null(strstr(bm_last_message(), "attempt 2 of this run"));
    assert_non_null(strstr(bm_last_message(), "belongs to attempt 1"));
    assert_false(bm_fence_stands());
    assert_int_equal(bm_file_write(path, "ghost", 5), BM_ERR_COMM);
    assert_int_equal(bm_file_replace_commit(&open_file, true), BM_ERR_COMM);
    bm_file_replace_abort(&open_file);
    bm_journal_write(j, "ghost", (bm_field[]){{0}});
    assert_content(path, "mine");
    bm_fence_join(s.path, later);
    bm_journal_write(j, "end", (bm_field[]){{0}});
    assert_ok(bm_file_write(path, "theirs", 6));
    bm_fence_leave();
    bm_journal_close(j);
    assert_content(path, "theirs");
    lines = slurp(journal, &n);
    assert_null(strstr(lines, "ghost"));
    assert_non_null(strstr(lines, "\"end\""));
    free(lines);
    assert_int_equal(scratch_count(&s, false), 3); /* no temporary files */
    scratch_close(&s);
}

enum { JOINS = 100000 };

typedef struct joining {
    scratch run[2];
    char own[2][BM_FENCE_ROOM];
    atomic_bool done;
} joining;

static void *join_by_turns(void *self)
{
    joining *j = self;

    for (int i = 0; i < JOINS; i++)
        bm_fence_join(j->run[i % 2].path, j->own[i % 2]);
    atomic_store(&j->done, true);
    return NULL;
}

/* A rank joins its attempt while its heartbeats look at the fence. */
static void test_a_process_that_joins_is_not_shut_out(void **_)
{
    joining j = {.run = {scratch_open(), scratch_open()}};
    pthread_t thread;
    int shut_out = 0;

    (void)_;
    for (int i = 0; i < 2; i++)
        assert_ok(bm_fence_begin(j.run[i].path, 1 + i, j.own[i]));
    assert_int_equal(pthread_create(&thread, NULL, join_by_turns, &j), 0);
    while (!atomic_load(&j.done))
        shut_out += !bm_fence_stands();
    pthread_join(thread, NULL);
    bm_fence_leave();
    assert_int_equal(shut_out, 0);
    for (int i = 0; i < 2; i++)
        scratch_close(&j.run[i]);
}

/* ---- locks --------------------------------------------------------------- */

/* From now on, for this process and its children, there are no locks. */
static void forbid_locks(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K,
                 SECCOMP_RET_ERRNO |
                     ((unsigned)error & (unsigned)SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

/* In a process of its own, where fcntl fails so: locks, and stays until its pipe
 * is closed. *ends[1]: close it to end the process. */
static pid_t lock_elsewhere(const char *directory, int error, int ends[2])
{
    pid_t child = 0;
    int lock = -1, said[2];
    char byte = 0;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(said), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        forbid_locks(error);
        byte = bm_file_lock(&lock, directory, "run.lock") == BM_OK ? 'y' : 'n';
        if (write(said[1], &byte, 1) == 1)
            (void)!read(ends[0], &byte, 1);
        _exit(byte == 'n');
    }
    close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    close(said[0]);
    assert_int_equal(byte, 'y');
    return child;
}

static int lock_code(const char *directory, int error)
{
    int state = 0, lock = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        forbid_locks(error);
        _exit(bm_file_lock(&lock, directory, "run.lock"));
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

static void test_a_lock_is_held_by_one_process(void **_)
{
    scratch s = scratch_open();
    int lock = -1, second = -1;

    (void)_;
    assert_ok(bm_file_lock(&lock, s.path, "run.lock"));
    assert_int_equal(bm_file_lock(&second, s.path, "run.lock"), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_message(), "in use by another job (host "));
    assert_null(strstr(bm_last_message(), "begun"));
    bm_file_unlock(lock, s.path, "run.lock");
    assert_ok(bm_file_lock(&lock, s.path, "run.lock"));
    bm_file_unlock(lock, s.path, "run.lock");
    scratch_close(&s);
}

/* Where there are no locks, a process of this host is found all the same, and
 * nobody who is gone. */
static void test_without_locks_a_process_of_this_host_is_found(void **_)
{
    static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP};
    scratch s = scratch_open();

    (void)_;
    FOR_EACH (i, errors) {
        int ends[2], state = 0;
        pid_t first = lock_elsewhere(s.path, errors[i], ends);

        assert_int_equal(lock_code(s.path, errors[i]), BM_ERR_CREATE);
        close(ends[1]);
        close(ends[0]);
        assert_int_equal(waitpid(first, &state, 0), first);
        assert_int_equal(lock_code(s.path, errors[i]), BM_OK);
    }
    assert_int_equal(lock_code(s.path, EIO), BM_ERR_CREATE);
    scratch_close(&s);
}

/* A number that another process has by now, and another host. */
static void test_without_locks_others_are_not_mistaken(void **_)
{
    scratch s = scratch_open();
    char text[300], host[100] = "";

    (void)_;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(text, sizeof text, "host %s, process %ld, begun 1\n", host,
             (long)getpid());
    spill(scratch_file(&s, "run.lock"), text, strlen(text));
    assert_int_equal(lock_code(s.path, ENOLCK), BM_OK);
    snprintf(text, sizeof text, "host elsewhere, process 1, begun 1\n");
    spill(scratch_file(&s, "run.lock"), text, strlen(text));
    assert_int_equal(lock_code(s.path, ENOLCK), BM_OK);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempts_are_numbered),
        cmocka_unit_test(test_a_damaged_number_is_none),
        cmocka_unit_test(test_an_earlier_attempt_writes_nothing),
        cmocka_unit_test(test_a_process_that_joins_is_not_shut_out),
        cmocka_unit_test(test_a_lock_is_held_by_one_process),
        cmocka_unit_test(test_without_locks_a_process_of_this_host_is_found),
        cmocka_unit_test(test_without_locks_others_are_not_mistaken),
    };

    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
