/*
 * Hosts of a job: --hosts, hostfiles as Open MPI's manual describes them, and
 * lists of nodes and tasks as Slurm's manual does; how ranks are dealt to them;
 * what hosts answer, by a substitute for ssh.
 */
#include "cli/help/version.h"
#include "cli/hosts/allocation.h"
#include "cli/hosts/hosts.h"
#include "cli/hosts/reach.h"
#include "cli/hosts/slurm.h"
#include "cli/launch/returns.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "a:4,b:2" for a list; free() it. */
static char *text_of(const bm_hosts *h)
{
    char *text = bm_hosts_text(h);

    assert_non_null(text);
    return text;
}

static void assert_hosts(const bm_hosts *h, const char *expected)
{
    char *text = text_of(h);

    assert_string_equal(text, expected);
    free(text);
}

static void assert_parsed(const char *words, const char *expected)
{
    bm_hosts h = {0};

    assert_ok(bm_hosts_parse(&h, words));
    assert_hosts(&h, expected);
    bm_hosts_free(&h);
}

static void test_hosts_of_an_option(void **_)
{
    (void)_;
    assert_parsed("a:4,b:4", "a:4,b:4");
    assert_parsed("a", "a:1");
    assert_parsed("a,a,b", "a:2,b:1");
    assert_parsed("a:4,b,a:2", "a:6,b:1");
    assert_parsed("10.0.0.1:65535", "10.0.0.1:65535");
    assert_parsed("me@node-1.cluster:2,node_2:3",
                  "me@node-1.cluster:2,node_2:3");
}

static void test_options_that_are_no_hosts(void **_)
{
    static const char *const wrong[] = {"",          ",",
                                        "a,",        ",a",
                                        "a::2",      "a:",
                                        ":4",        "a:0",
                                        "a:-1",      "a:4x",
                                        "a:65537",   "a:99999999999",
                                        "-o",        "-oX=y:2",
                                        "a b",       "a;b",
                                        "a:4,b:y",   "a,$(id)",
                                        "a@",        "@a",
                                        ".",         "a:40000,b:40000",
                                        "a:65536,b", "\xc3\xa9"};

    (void)_;
    FOR_EACH (i, wrong) {
        bm_hosts h = {0};

        assert_int_equal(bm_hosts_parse(&h, wrong[i]), BM_ERR_ARG);
        bm_hosts_free(&h);
    }
}

static void test_a_list_has_at_most_so_many_hosts(void **_)
{
    char *words = zeros((size_t)(BM_MOST_HOSTS + 1) * 8, 1);
    size_t n = 0;
    bm_hosts h = {0};

    (void)_;
    for (int i = 0; i < BM_MOST_HOSTS; i++)
        n += (size_t)sprintf(words + n, "%sn%d", i > 0 ? "," : "", i);
    assert_ok(bm_hosts_parse(&h, words));
    assert_int_equal(h.n, BM_MOST_HOSTS);
    bm_hosts_free(&h);
    sprintf(words + n, ",x");
    assert_int_equal(bm_hosts_parse(&h, words), BM_ERR_ARG);
    bm_hosts_free(&h);
    free(words);
}

/* ---- hostfiles ---------------------------------------------------------- */

static bm_status read_file(bm_hosts *h, const char *text)
{
    write_text("hosts", text);
    *h = (bm_hosts){0};
    return bm_hosts_read(h, in_folder("hosts"));
}

static void test_hostfiles_of_open_mpi(void **_)
{
    bm_hosts h;

    (void)_;
    assert_ok(read_file(&h, "\xEF\xBB\xBF"
                            "e\n"));
    assert_hosts(&h, "e:0");
    bm_hosts_free(&h);
    assert_ok(read_file(&h, "# a comment\n\n"
                            "a slots=4 max_slots=8   # another\n"
                            "\tb\tslots = 2\r\n"
                            "c max-slots=3 slots=1\n"
                            "a slots=1\n"
                            "d"));
    assert_hosts(&h, "a:5,b:2,c:1,d:0");
    assert_int_equal(h.list[0].most, 9);
    assert_int_equal(h.list[1].most, 2);
    assert_int_equal(h.list[2].most, 3);
    bm_hosts_free(&h);
}

static void test_wrong_lines_are_named(void **_)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"a\nb slots=x\n", "line 2: slots is not an integer"},
        {"a slots=\n", "line 1: slots is not an integer"},
        {"a slots=0\n", "slots is not an integer"},
        {"a slots=4 max_slots=2\n", "max_slots=2 is less than slots=4"},
        {"a slots\n", "'slots'"},
        {"a b\n", "'b'"},
        {"a port=22\n", "unknown word 'port'"},
        {"^a\n", "invalid host name '^a'"},
        {"+n0 slots=2\n", "invalid host name '+n0'"},
        {"# nothing\n", "no host"},
        {"", "no host"},
    };

    (void)_;
    FOR_EACH (i, wrong) {
        bm_hosts h;

        assert_int_equal(read_file(&h, wrong[i].text), BM_ERR_FORMAT);
        if (strstr(bm_last_message(), wrong[i].says) == NULL)
            fail_msg("%s: %s", wrong[i].text, bm_last_message());
        bm_hosts_free(&h);
    }
    assert_int_equal(bm_hosts_read(&(bm_hosts){0}, in_folder("none")),
                     BM_ERR_MISSING);
}

/* ---- Slurm -------------------------------------------------------------- */

static void assert_nodes(const char *list, const char *expected)
{
    bm_hosts h = {0};
    char *text = NULL;
    size_t n = 0;

    assert_ok(bm_slurm_nodes(&h, list));
    text = zeros(h.n * (BM_HOST_NAME + 1), 1);
    for (size_t i = 0; i < h.n; i++)
        n +=
            (size_t)sprintf(text + n, "%s%s", i > 0 ? " " : "", h.list[i].name);
    assert_string_equal(text, expected);
    free(text);
    bm_hosts_free(&h);
}

/* As `scontrol show hostnames` expands them. */
static void test_lists_of_nodes(void **_)
{
    (void)_;
    assert_nodes("n1", "n1");
    assert_nodes("n1,n2", "n1 n2");
    assert_nodes("n[1-3]", "n1 n2 n3");
    assert_nodes("n[001-003,7]", "n001 n002 n003 n7");
    assert_nodes("n[08-11]", "n08 n09 n10 n11");
    assert_nodes("a[1-2],b,gpu-[3,5]x", "a1 a2 b gpu-3x gpu-5x");
    assert_nodes("rack[1-2]n[01-02]", "rack1n01 rack1n02 rack2n01 rack2n02");
}

static void test_lists_that_are_none(void **_)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "n[",
                                        "n[]",
                                        "n[1",
                                        "n]",
                                        "n[1-]",
                                        "n[-1]",
                                        "n[1,]",
                                        "n[,1]",
                                        "n[2-1]",
                                        "n[1-2-3]",
                                        "n[a]",
                                        "n[1]]",
                                        "n[[1]]",
                                        "n[1-99999999999]",
                                        "n[1-5000]",
                                        "n1,",
                                        "n[1-2],,a",
                                        "a[1-2][1-2][1-2][1-2][1-2]",
                                        "a[1-70]b[1-70]",
                                        "n [1]"};

    (void)_;
    FOR_EACH (i, wrong) {
        bm_hosts h = {0};

        if (bm_slurm_nodes(&h, wrong[i]) != BM_ERR_CONFIG)
            fail_msg("'%s' is a list", wrong[i]);
        bm_hosts_free(&h);
    }
}

static bm_status counts(size_t nodes, const char *text, char **out)
{
    bm_hosts h = {0};
    bm_status status = BM_OK;

    for (size_t i = 0; i < nodes; i++) {
        char name[24];

        snprintf(name, sizeof name, "n%zu", i);
        assert_ok(bm_hosts_add(&h, name, strlen(name), 0, 0));
    }
    status = bm_slurm_counts(&h, text, text);
    *out = text_of(&h);
    bm_hosts_free(&h);
    return status;
}

static void test_tasks_of_nodes(void **_)
{
    static const struct {
        size_t nodes;
        const char *text, *expected;
    } right[] = {{3, "4(x2),3", "n0:4,n1:4,n2:3"},
                 {1, "16", "n0:16"},
                 {4, "1,2(x2),1", "n0:1,n1:2,n2:2,n3:1"}};
    static const char *const wrong[] = {
        "",       "4",       "4(x4)",           "4(x2)",    "4(x2",
        "4(2),3", "x",       "4,4,4,4",         "4,4,4,",   ",4,4",
        "-4,4,4", "4(x0),4", "99999999999(x3)", "40000(x3)"};
    char *text = NULL;

    (void)_;
    FOR_EACH (i, right) {
        assert_ok(counts(right[i].nodes, right[i].text, &text));
        assert_string_equal(text, right[i].expected);
        free(text);
    }
    FOR_EACH (i, wrong) {
        if (counts(3, wrong[i], &text) != BM_ERR_CONFIG)
            fail_msg("'%s' fits three nodes", wrong[i]);
        free(text);
    }
}

/* What sbatch -N 3 -n 11 sets; SLURM_NTASKS is not set without -n. */
static void test_an_allocation_is_read(void **_)
{
    bm_hosts h = {0};
    long ranks = 0;

    (void)_;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
    setenv("SLURM_TASKS_PER_NODE", "4(x2),3", 1);
    setenv("SLURM_PROCID", "0", 1); /* a batch script has it too */
    assert_true(bm_slurm_allocation() && !bm_slurm_task());
    assert_ok(bm_slurm_hosts(&h, &ranks));
    assert_hosts(&h, "n1:4,n2:4,n3:3");
    assert_int_equal(ranks, 11);
    assert_int_equal(bm_hosts_deal(&h, 12), BM_ERR_ARG);
    bm_hosts_free(&h);
    setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2),2", 1); /* room for -n 19 */
    assert_ok(bm_slurm_hosts(&h, &ranks));
    assert_int_equal(ranks, 11);
    assert_ok(bm_hosts_deal(&h, 12));
    assert_hosts(&h, "n1:5,n2:4,n3:3");
    bm_hosts_free(&h);
    setenv("SLURM_NTASKS", "9", 1);
    assert_ok(bm_slurm_hosts(&h, &ranks));
    assert_int_equal(ranks, 9);
    bm_hosts_free(&h);
    setenv("SLURM_STEP_ID", "4294967290", 1); /* the shell of salloc */
    assert_true(bm_slurm_allocation() && !bm_slurm_task());
    setenv("SLURM_STEP_ID", "0", 1);
    assert_true(!bm_slurm_allocation() && bm_slurm_task());
    unsetenv("SLURM_TASKS_PER_NODE");
    assert_int_equal(bm_slurm_hosts(&h, &ranks), BM_ERR_CONFIG);
    bm_hosts_free(&h);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_ID");
    assert_false(bm_slurm_allocation());
}

/* ---- dealing ------------------------------------------------------------ */

static void assert_dealt(const char *file, long ranks, const char *expected)
{
    bm_hosts h;

    assert_ok(read_file(&h, file));
    assert_ok(bm_hosts_deal(&h, ranks));
    assert_hosts(&h, expected);
    bm_hosts_free(&h);
}

static void test_ranks_are_dealt_in_the_order_of_hosts(void **_)
{
    const char *file = "a slots=4 max_slots=6\nb slots=2\nc slots=1 "
                       "max_slots=3\n";
    bm_hosts h;

    (void)_;
    assert_dealt(file, 0, "a:4,b:2,c:1"); /* all slots */
    assert_dealt(file, 3, "a:3");
    assert_dealt(file, 5, "a:4,b:1");
    assert_dealt(file, 8, "a:5,b:2,c:1");
    assert_dealt(file, 11, "a:6,b:2,c:3");
    assert_ok(read_file(&h, file));
    assert_int_equal(bm_hosts_deal(&h, 12), BM_ERR_ARG);
    assert_non_null(strstr(bm_last_message(), "11 slots"));
    bm_hosts_free(&h);
}

/* ---- answers ------------------------------------------------------------ */

/* Hosts u@up.. are as this one, with four cores; others do not answer. A name
 * with a user is not looked up. */
static void replace_ssh(void)
{
    json_t *answer = bm_version_json();

    json_object_set_new(answer, "cores", json_integer(4));
    assert_int_equal(json_dump_file(answer, in_folder("answer"), 0), 0);
    json_decref(answer);
    write_text("agent", "#!/bin/sh\n"
                        "case $1 in\n"
                        "u@up*) cat \"${0%/*}/answer\" ;;\n"
                        "*) echo 'No route to host' >&2; exit 255 ;;\n"
                        "esac\n");
    assert_int_equal(chmod(in_folder("agent"), 0700), 0);
    setenv("OMPI_MCA_plm_rsh_agent", in_folder("agent"), 1);
}

static void test_cores_are_slots_up_to_max_slots(void **_)
{
    static const long most[] = {2, 4, 8, 3};
    bm_hosts h;

    (void)_;
    replace_ssh();
    assert_ok(read_file(&h, "u@up1 max_slots=2\n"
                            "u@up2\n"
                            "u@up3 max_slots=8\n"
                            "u@up4 slots=1 max_slots=3\n"));
    assert_ok(bm_reach_check(&h, in_folder("run")));
    assert_hosts(&h, "u@up1:2,u@up2:4,u@up3:4,u@up4:1");
    FOR_EACH (i, most)
        assert_int_equal(h.list[i].most, most[i]);
    bm_hosts_free(&h);
}

/* Adds hosts that do not answer. */
static void add_lost(bm_hosts *h, int n)
{
    for (int i = 0; i < n; i++) {
        char name[24];

        snprintf(name, sizeof name, "u@down%d", i);
        assert_ok(bm_hosts_add(h, name, strlen(name), 1, 1));
    }
}

/* What bm_reach_keep prints; free() it. */
static char *keep(bm_hosts *h, bm_hosts *lost)
{
    FILE *file = fopen(in_folder("printed"), "w");
    int kept = dup(STDERR_FILENO);
    bm_status status = BM_OK;
    size_t size = 0;

    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    status = bm_reach_keep(h, lost, in_folder("run"));
    dup2(kept, STDERR_FILENO);
    close(kept);
    fclose(file);
    assert_ok(status);
    return slurp(in_folder("printed"), &size);
}

/* One error has a line for at most twelve of them, but each has a warning. */
static void test_each_lost_host_is_named(void **_)
{
    enum { LOST = 15 };
    bm_hosts h = {0}, lost = {0};
    char *printed = NULL;

    (void)_;
    replace_ssh();
    add_lost(&h, LOST);
    assert_int_equal(bm_reach_check(&h, in_folder("run")), BM_ERR_COMM);
    assert_says(bm_last_message(), "15 of 15 hosts cannot take part");
    assert_int_equal(count_of(bm_last_message(), "u@down"), 12);
    assert_ok(bm_hosts_add(&h, "u@up", 4, 1, 1));
    printed = keep(&h, &lost);
    assert_hosts(&h, "u@up:1");
    assert_int_equal(lost.n, LOST);
    for (int i = 0; i < LOST; i++) {
        char words[80];

        snprintf(words, sizeof words,
                 "continuing without u@down%d: ssh fails (No route", i);
        assert_int_equal(count_of(printed, words), 1);
    }
    free(printed);
    bm_hosts_free(&h);
    bm_hosts_free(&lost);
}

/* A job of so many ranks on "u@up", with 4 slots, at most 6, and "u@down0" with
 * one: the ranks that it goes on with, and the hosts that it waits for. */
static void assert_again(long ranks, long left, size_t lost)
{
    bm_allocation whole = {.ranks = ranks, .by = BM_BY_HOSTS}, now = {0};

    assert_ok(bm_hosts_add(&whole.given, "u@up", 4, 4, 6));
    add_lost(&whole.given, 1);
    assert_ok(bm_allocation_again(&now, &whole, in_folder("run")));
    assert_int_equal(now.ranks, left);
    assert_int_equal(now.lost.n, lost);
    bm_allocation_free(&now);
    bm_allocation_free(&whole);
}

static void test_a_host_that_is_not_needed_is_not_waited_for(void **_)
{
    (void)_;
    replace_ssh();
    assert_again(3, 3, 0);
    assert_again(4, 4, 0);
    assert_again(5, 5, 1); /* more ranks than slots */
    assert_again(7, 6, 1);
}

static void test_hosts_that_come_and_go_are_asked_less_often(void **_)
{
    static const double every[] = {20, 40, 80, 160, 320, 640, 1280, 1280};
    bm_hosts lost = {0};
    bm_returns r = {.lost = &lost, .folder = in_folder("run"), .every_s = 80};

    (void)_;
    FOR_EACH (i, every)
        assert_true(bm_returns_every((int)i) == every[i]);
    assert_true(bm_returns_every(1 << 30) == 1280);
    replace_ssh();
    assert_ok(bm_hosts_add(&lost, "u@up", 4, 1, 1));
    assert_false(bm_returns_look(&r, 1));
    assert_false(bm_returns_look(&r, 80));
    assert_true(r.child == 0); /* nobody asks */
    assert_false(bm_returns_look(&r, 81));
    assert_true(r.child > 0);
    while (!bm_returns_look(&r, 82))
        assert_true(r.child > 0); /* still asking */
    bm_returns_close(&r);
    bm_hosts_free(&lost);
}

/* ---- junk --------------------------------------------------------------- */

/* Texts of characters that the formats use: no crash, and what is accepted has
 * valid names and sums. */
static void test_junk_is_refused_or_valid(void **_)
{
    static const char letters[] = "an019[]-,:=()x #\n\t@._s";
    uint64_t seed = seed_of_the_day();

    (void)_;
    for (uint64_t k = 0; k < 20000; k++) {
        bm_hosts h = {0};
        char text[24] = "";
        size_t n = 1 + mix(seed + k) % 22;
        bm_status status = BM_OK;

        for (size_t i = 0; i < n; i++)
            text[i] = letters[mix(seed + 100 * k + i) % (sizeof letters - 1)];
        if (k % 100 == 0)
            status = read_file(&h, text);
        else if (k % 2 == 0)
            status = bm_hosts_parse(&h, text);
        else
            status = bm_slurm_nodes(&h, text);
        for (size_t i = 0; i < h.n && status == BM_OK; i++)
            assert_true(strlen(h.list[i].name) > 0 &&
                        strcspn(h.list[i].name, "[], :=#\n\t()") ==
                            strlen(h.list[i].name) &&
                        h.list[i].slots >= 0 &&
                        h.list[i].slots <= h.list[i].most);
        if (status == BM_OK && bm_slurm_counts(&h, text, text) == BM_OK)
            assert_true(h.n > 0 && bm_hosts_slots(&h) <= BM_MOST_SLOTS);
        bm_hosts_free(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_of_an_option),
        cmocka_unit_test(test_options_that_are_no_hosts),
        cmocka_unit_test(test_a_list_has_at_most_so_many_hosts),
        cmocka_unit_test(test_hostfiles_of_open_mpi),
        cmocka_unit_test(test_wrong_lines_are_named),
        cmocka_unit_test(test_lists_of_nodes),
        cmocka_unit_test(test_lists_that_are_none),
        cmocka_unit_test(test_tasks_of_nodes),
        cmocka_unit_test(test_an_allocation_is_read),
        cmocka_unit_test(test_ranks_are_dealt_in_the_order_of_hosts),
        cmocka_unit_test(test_cores_are_slots_up_to_max_slots),
        cmocka_unit_test(test_each_lost_host_is_named),
        cmocka_unit_test(test_a_host_that_is_not_needed_is_not_waited_for),
        cmocka_unit_test(test_hosts_that_come_and_go_are_asked_less_often),
        cmocka_unit_test(test_junk_is_refused_or_valid),
    };

    return cmocka_run_group_tests_name("hosts", tests, folder_make,
                                       folder_remove);
}
