/*
 * bmuf doctor: each check with a planted fault, limits on time, and what bmuf
 * scale reads of it. doctor_test.sh has hosts with faults.
 */
#include "cli/doctor/limits.h"
#include "cli/doctor/links.h"
#include "cli/doctor/report.h"
#include "cli/doctor/timed_check.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bm_check_context exam_new(void)
{
    return (bm_check_context){.facts = json_object(), .findings = json_array()};
}

static void exam_free(bm_check_context *e)
{
    json_decref(e->facts);
    json_decref(e->findings);
}

/* The first finding with this severity; NULL: none. */
static const char *finding(const json_t *list, const char *severity)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *f = json_array_get(list, i);

        if (strcmp(json_string_value(json_object_get(f, "severity")),
                   severity) == 0)
            return json_string_value(json_object_get(f, "text"));
    }
    return NULL;
}

static json_t *parse(const char *text)
{
    json_t *o = json_loads(text, 0, NULL);

    assert_non_null(o);
    return o;
}

/* ---- the program --------------------------------------------------------- */

static void test_this_machine_is_examined(void **_)
{
    static const char *const names[] = {
#define X(name) #name,
        BM_CHECKS(X)
#undef X
    };
    outcome o = BMUF("doctor");
    json_t *all = NULL;

    (void)_;
    assert_code(o, 0);
    FOR_EACH (i, names) {
        if (strcmp(names[i], "clock") != 0) /* of two hosts */
            assert_says(o.out, names[i]);
    }
    assert_says(o.out, "skipped  network");
    o = BMUF("doctor", "--json", "--device", "cpu");
    assert_code(o, 0);
    all = parse(o.out);
    assert_true(json_is_true(json_object_get(all, "would_start")));
    assert_int_equal(json_array_size(json_object_get(all, "ranks")), 1);
    assert_null(json_object_get(all, "network"));
    json_decref(all);
}

/* Words of a shell, "$0": bmuf. */
static outcome shell(const char *words)
{
    return command_run(&(command){
        .program = "/bin/sh",
        .words = (const char *const[]){"-c", words, bmuf_path(), NULL}});
}

static void test_no_file_of_the_check_is_left(void **_)
{
    scratch s = scratch_open();

    (void)_;
    assert_code(BMUF("doctor", "--folder", s.path), 0);
    assert_int_equal(scratch_count(&s, false), 0);
    /* Not either where a file may have half a megabyte. */
    setenv("FOLDER", s.path, 1);
    (void)shell("ulimit -f 1000; exec \"$0\" doctor --folder \"$FOLDER\"");
    assert_int_equal(scratch_count(&s, false), 0);
    scratch_close(&s);
}

static void test_faults_of_a_machine_are_found(void **_)
{
    outcome o = shell("ulimit -n 40; exec \"$0\" doctor");

    (void)_;
    assert_code(o, 69);
    assert_says(o.out, "error    limits   open files: limited to 40");
    assert_says(o.out, "ulimit -n 4096");
    assert_says(o.err, "1 finding would keep a job from starting");
    o = shell("ulimit -s 512; exec \"$0\" doctor");
    assert_code(o, 0);
    assert_says(o.out, "warning  limits   the stack: limited to 0.5 MB");
    o = BMUF("doctor", "--folder", "/proc");
    assert_code(o, 69);
    assert_says(o.out, "error    folder   /proc/");
    o = BMUF("doctor", "--folder", in_folder("nowhere"));
    assert_code(o, 69);
    assert_says(o.out, "No such file");
    o = BMUF("doctor", "--device", "cuda");
    assert_true(o.code == 0 || strstr(o.out, "error    device") != NULL);
    assert_int_equal(o.code == 69, strstr(o.out, "no device cuda") != NULL);
    o = BMUF("doctor", "--device", "abacus");
    assert_code(o, 64);
    o = shell("TMPDIR=/nowhere; export TMPDIR; exec \"$0\" doctor");
    assert_code(o, 69);
    assert_says(o.out, "error    limits   TMPDIR /nowhere");
}

/* Open MPI 4.1.4 starts two ranks with 36 files, but not four. */
static void test_a_job_warns_of_too_few_files(void **_)
{
    outcome o = shell("ulimit -n 38; exec \"$0\" doctor -n 2");

    (void)_;
    assert_says(o.err, "open files: limited to 38, but mpirun needs up to 40 "
                       "for 2 ranks; ulimit -n 4096");
    o = shell("ulimit -n 50; exec \"$0\" doctor -n 2");
    assert_null(strstr(o.err, "mpirun needs"));
}

/* At once: mpirun would wait for its ranks. */
static void test_a_job_with_far_too_few_files_is_refused(void **_)
{
    (void)_;
    assert_fails(shell("ulimit -n 30; exec \"$0\" doctor -n 2"), 69,
                 "open files: limited to 30, but mpirun needs 36 or more for 2 "
                 "ranks; ulimit -n 4096");
}

static const char two_workers[] = "[data]\ntrain = .\n[model]\nnet = linear\n"
                                  "[job]\nworkers = 2\n";

/* In the words of train. */
static void test_more_ranks_than_workers_are_found(void **_)
{
    static const char refusal[] = "6 ranks, but job.workers = 2: every rank "
                                  "needs a worker; start fewer ranks";
    json_t *all = NULL;
    outcome o;

    (void)_;
    write_text("two.ini", two_workers);
    assert_fails(BMUF("train", "two.ini", "-n", "6"), 78, refusal);
    o = BMUF("doctor", "two.ini", "-n", "6");
    assert_code(o, 69);
    assert_says(o.out, "error    start    6 ranks, but job.workers = 2");
    assert_says(o.out, refusal);
    o = BMUF("doctor", "two.ini", "-n", "6", "--json");
    assert_code(o, 69);
    all = parse(o.out);
    assert_false(json_is_true(json_object_get(all, "would_start")));
    json_decref(all);
    o = BMUF_ON(3, "doctor", "two.ini"); /* under another mpirun */
    assert_code(o, 69);
    assert_says(o.out, "error    start    3 ranks, but job.workers = 2");
}

static void test_data_of_a_configuration_is_read(void **_)
{
    outcome o;

    (void)_;
    write_text("my.ini", "[data]\ntrain = nowhere/at/all\n[model]\n"
                         "net = linear\n");
    o = BMUF("doctor", "my.ini");
    assert_code(o, 69);
    assert_says(o.out, "error    data     nowhere/at/all");
    o = BMUF("doctor", "my.ini", "--set", "data.train=.");
    assert_code(o, 69);
    assert_says(o.out, ". has no shards");
    o = BMUF("doctor", "my.ini", "--set", "data.dev=also/nowhere");
    assert_code(o, 69);
    assert_says(o.out, "error    data     data.dev = also/nowhere: ");
    o = BMUF("doctor", "my.ini", "--set", "data.dev=.");
    assert_code(o, 69);
    assert_says(o.out, "error    data     data.dev = .: no shards");
    write_text("empty-00000.bmuf.h5", "");
    o = BMUF("doctor", "my.ini", "--set", "data.train=.");
    assert_code(o, 69);
    assert_says(o.out, "./empty-00000.bmuf.h5 cannot be read: it is empty");
    assert_fails(BMUF("doctor", "--set", "data.train=."), 64, "give CONFIG");
    assert_fails(BMUF("doctor", "--folder", ""), 64, "--folder is empty");
    o = shell("BMUF_ISA=foo exec \"$0\" doctor");
    assert_code(o, 69);
    assert_says(o.out, "error    program  BMUF_ISA=foo is invalid");
}

/* ---- links --------------------------------------------------------------- */

static void test_each_pair_meets_once(void **_)
{
    (void)_;
    for (int size = 1; size <= 17; size++) {
        int met[17][17] = {{0}};

        for (int round = 0; round < size - 1 + size % 2; round++)
            for (int rank = 0; rank < size; rank++) {
                int other = bm_links_partner(size, rank, round);

                assert_true(other >= -1 && other < size && other != rank);
                if (other < 0)
                    continue;
                assert_int_equal(bm_links_partner(size, other, round), rank);
                met[rank][other]++;
            }
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

/* Rank r on host r, or all on one: all pairs have 1 GB/s, but rank 1 and 3. */
static json_t *four_ranks(bool inside)
{
    json_t *ranks = json_array();

    for (int r = 0; r < 4; r++) {
        json_t *links = json_array();
        char host[16];

        snprintf(host, sizeof host, "n%d", inside ? 0 : r);
        for (int b = r + 1; b < 4; b++)
            json_array_append_new(links, json_pack("{s:i, s:i, s:f, s:f, s:b}",
                                                   "a", r, "b", b, "latency_us",
                                                   10.0 + b, "gb_per_s",
                                                   r == 1 && b == 3 ? 0.1 : 1.0,
                                                   "inside", inside));
        json_array_append_new(ranks, json_pack("{s:s, s:{s:o}}", "host", host,
                                               "facts", "links", links));
    }
    return ranks;
}

static void test_a_slow_link_is_named(void **_)
{
    bm_check_context e = exam_new();
    json_t *ranks = four_ranks(false), *all = bm_links_network(ranks);
    json_t *network = json_object_get(all, "link");
    const char *text = NULL;

    (void)_;
    bm_links_compare(&e, ranks);
    text = finding(e.findings, "warning");
    assert_non_null(text);
    assert_says(text, "rank 1 on n1 and rank 3 on n3: 0.1 GB/s");
    assert_says(finding(e.findings, "ok"), "6 pairs of hosts");
    /* medians of 11 12 12 13 13 13 us, and of 1 and 0.1 GB/s */
    assert_true(near(json_number_value(json_object_get(network, "latency_us")),
                     12.5, 1e-9));
    assert_true(near(json_number_value(json_object_get(network, "bandwidth")),
                     1, 1e-9));
    json_decref(all);
    json_decref(ranks);
    exam_free(&e);
}

/* They have no cable. */
static void test_a_slow_pair_of_one_host_has_no_cable(void **_)
{
    bm_check_context e = exam_new();
    json_t *ranks = four_ranks(true);
    char *remedies = NULL;

    (void)_;
    bm_links_compare(&e, ranks);
    assert_says(finding(e.findings, "warning"),
                "rank 1 on n0 and rank 3 on n0: 0.1 GB/s");
    remedies = json_dumps(e.findings, 0);
    assert_says(remedies, "more ranks than cores, or other load");
    assert_null(strstr(remedies, "cable"));
    free(remedies);
    json_decref(ranks);
    exam_free(&e);
}

static void test_ranks_of_one_host_are_measured(void **_)
{
    outcome o = BMUF("doctor", "-n", "3", "--json", "--folder", in_folder("."));
    json_t *all = NULL, *inside = NULL;
    FILE *f = NULL;

    (void)_;
    assert_code(o, 0);
    all = parse(o.out);
    inside = json_object_get(json_object_get(all, "network"), "inside");
    assert_int_equal(json_integer_value(json_object_get(inside, "workers")), 3);
    assert_true(json_number_value(json_object_get(inside, "bandwidth")) > 0);
    json_decref(all);
    f = fopen(in_folder("net.json"), "w");
    assert_non_null(f);
    fputs(o.out, f);
    fclose(f);
    write_text("journal.jsonl",
               "{\"event\":\"start\",\"workers\":1,\"ranks\":1,"
               "\"strategy\":\"bmuf\",\"net\":\"linear\",\"weights\":1000}\n"
               "{\"event\":\"block\",\"frames\":10,\"batches\":1,"
               "\"compute_s\":1,\"backward_s\":0.5,\"stall_s\":0}\n"
               "{\"event\":\"block\",\"frames\":10,\"batches\":1,"
               "\"compute_s\":1,\"backward_s\":0.5,\"stall_s\":0}\n");
    o = BMUF("scale", ".", "--network", "net.json", "--workers", "1,2");
    assert_code(o, 0);
    assert_says(o.out, "workers of a host 3");
}

/* ---- hosts that differ --------------------------------------------------- */

static void test_another_version_is_found(void **_)
{
    bm_check_context e = exam_new();
    json_t *ranks = parse(
        "[{\"host\":\"a\",\"facts\":{\"version\":\"0.1.0\",\"mpi\":\"4.1.4\","
        "\"hdf5\":\"1.10\",\"blas\":\"Zen\",\"onednn\":\"2.6\","
        "\"loops\":\"avx2\"}},"
        "{\"host\":\"b\",\"facts\":{\"version\":\"0.0.9\",\"mpi\":\"4.1.4\","
        "\"hdf5\":\"1.10\",\"blas\":\"Haswell\",\"onednn\":\"2.6\","
        "\"loops\":\"avx2\"}}]");

    (void)_;
    bm_check_program.compare(&e, ranks);
    assert_string_equal(finding(e.findings, "error"),
                        "bmuf is 0.1.0 on a, but 0.0.9 on b");
    assert_string_equal(finding(e.findings, "warning"),
                        "BLAS is Zen on a, but Haswell on b");
    json_decref(ranks);
    exam_free(&e);
}

static void test_a_host_without_a_device_is_found(void **_)
{
    bm_check_context e = exam_new();
    json_t *ranks = parse("[{\"host\":\"a\",\"facts\":{\"device\":\"H100\"}},"
                          "{\"host\":\"b\",\"facts\":{}}]");

    (void)_;
    bm_check_device.compare(&e, ranks);
    assert_string_equal(finding(e.findings, "error"),
                        "a has a device, b has none");
    json_decref(ranks);
    exam_free(&e);
}

static void test_clocks_and_cores_that_differ_are_found(void **_)
{
    bm_check_context e = exam_new();
    json_t *ranks = parse("[{\"host\":\"a\",\"facts\":{\"cores\":8}},"
                          "{\"host\":\"b\",\"facts\":{\"cores\":4}}]");

    (void)_;
    bm_check_cores.compare(&e, ranks);
    assert_says(finding(e.findings, "warning"), "hosts have 4 to 8 cores");
    json_decref(ranks);
    exam_free(&e);
    e = exam_new();
    ranks = parse("[{\"host\":\"a\",\"facts\":{\"offset_s\":0}},"
                  "{\"host\":\"b\",\"facts\":{\"offset_s\":0.4,"
                  "\"within_s\":0.1}},"
                  "{\"host\":\"c\",\"facts\":{\"offset_s\":-12,"
                  "\"within_s\":0.1}}]");
    bm_check_clock.compare(&e, ranks);
    assert_int_equal(json_array_size(e.findings), 1);
    assert_says(finding(e.findings, "warning"),
                "the clock of c is 12 s behind that of a");
    json_decref(ranks);
    exam_free(&e);
}

/* Findings of hosts that say the same are one line. */
static void test_equal_findings_are_one_line(void **_)
{
    json_t *job = json_array(), *none = json_object(), *all = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    (void)_;
    for (int r = 0; r < 3; r++) {
        bm_check_context e = exam_new();
        char host[16];
        json_t *report = NULL;

        snprintf(host, sizeof host, "n%d", r);
        report = bm_report_new(host);
        bm_find(&e, BM_FINE, "", "the same");
        if (r > 0)
            bm_find(&e, BM_FATAL, "do it", "fault %d", r / 2);
        bm_report_add(report, "limits", &e);
        json_array_append_new(job, report);
        exam_free(&e);
    }
    all = bm_report_findings(job, none);
    assert_int_equal(bm_report_fatal(all), 2);
    bm_report_print(all, bm_report_hosts(job), f);
    fclose(f);
    assert_string_equal(text, "ok       limits   all hosts: the same\n"
                              "error    limits   n1: fault 0; do it\n"
                              "error    limits   n2: fault 1; do it\n");
    free(text);
    json_decref(all);
    json_decref(job);
    json_decref(none);
}

/* Ranks of a host that measure other speeds are one line, unless one has a
 * fault. */
static void test_ranks_of_a_host_say_once_that_it_is_fine(void **_)
{
    json_t *job = json_array(), *none = json_object(), *all = NULL;

    (void)_;
    for (int r = 0; r < 2; r++) {
        bm_check_context e = exam_new();
        json_t *report = bm_report_new("n");

        bm_find(&e, BM_FINE, "", "reads %d MB/s", 100 + r);
        if (r == 1)
            bm_find(&e, BM_DOUBTFUL, "", "rank 1 is slow");
        bm_report_add(report, "data", &e);
        json_array_append_new(job, report);
        exam_free(&e);
    }
    all = bm_report_findings(job, none);
    assert_int_equal(json_array_size(all), 2);
    assert_string_equal(finding(all, "ok"), "reads 100 MB/s");
    assert_string_equal(finding(all, "warning"), "rank 1 is slow");
    json_decref(all);
    json_decref(job);
    json_decref(none);
}

/* ---- limits on time ------------------------------------------------------ */

static void sleep_long(bm_check_context *e)
{
    (void)e;
    sleep(30);
}

static void test_a_check_that_does_not_end_is_left_behind(void **_)
{
    static const bm_check slow = {
        .name = "limits", .seconds = 0.2, .host = sleep_long};
    static const bm_check_target target = {
        .folder = ".", .data = "", .others = {"", ""}, .device = "cpu"};
    json_t *report = bm_report_new("a"), *list = NULL;
    time_t since = time(NULL);

    (void)_;
    assert_false(bm_timed_check_run(&slow, &target, report));
    assert_true(time(NULL) - since < 5);
    list = json_object_get(
        json_object_get(json_object_get(report, "checks"), "limits"),
        "findings");
    assert_says(finding(list, "skipped"), "did not end within 0.2 s");
    json_decref(report);
}

static void leave(void *self)
{
    (void)self;
    _exit(69);
}

static void test_ranks_that_wait_without_end_give_up(void **_)
{
    pid_t child = -1;
    int state = 0;

    (void)_;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(20);
        bm_guard_begin(5, leave, NULL);
        bm_guard_end(); /* in time */
        bm_guard_begin(0.2, leave, NULL);
        for (;;)
            pause();
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 69);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_wait_without_end_give_up),
        cmocka_unit_test(test_this_machine_is_examined),
        cmocka_unit_test(test_no_file_of_the_check_is_left),
        cmocka_unit_test(test_faults_of_a_machine_are_found),
        cmocka_unit_test(test_a_job_warns_of_too_few_files),
        cmocka_unit_test(test_a_job_with_far_too_few_files_is_refused),
        cmocka_unit_test(test_more_ranks_than_workers_are_found),
        cmocka_unit_test(test_a_slow_pair_of_one_host_has_no_cable),
        cmocka_unit_test(test_ranks_of_a_host_say_once_that_it_is_fine),
        cmocka_unit_test(test_data_of_a_configuration_is_read),
        cmocka_unit_test(test_each_pair_meets_once),
        cmocka_unit_test(test_a_slow_link_is_named),
        cmocka_unit_test(test_ranks_of_one_host_are_measured),
        cmocka_unit_test(test_another_version_is_found),
        cmocka_unit_test(test_a_host_without_a_device_is_found),
        cmocka_unit_test(test_clocks_and_cores_that_differ_are_found),
        cmocka_unit_test(test_equal_findings_are_one_line),
        cmocka_unit_test(test_a_check_that_does_not_end_is_left_behind),
    };
    return cmocka_run_group_tests_name("doctor", tests, folder_make,
                                       folder_remove);
}
