/*
 * Filtering of mpirun's output, with texts of Open MPI 4.1.4, cut at every
 * possible place.
 */
#include "cli/launch/mpirun_output.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

#define DASHES                                                                 \
    "------------------------------------------------------------------------" \
    "-"                                                                        \
    "-\n"

static const char death[] =
    DASHES "mpirun noticed that process rank 1 with PID 4711 on node host-2 "
           "exited on signal 9 (Killed).\n" DASHES;
static const char exit_code[] =
    DASHES "Primary job  terminated normally, but 1 process returned\n"
           "a non-zero exit code. Per user-direction, the job has been "
           "aborted.\n" DASHES;
static const char first_of_all[] =
    DASHES "mpirun detected that one or more processes exited with non-zero "
           "status, thus causing\nthe job to be terminated. The first process "
           "to do so was:\n\n  Process name: [[18822,1],1]\n"
           "  Exit code:    65\n" DASHES;
static const char slots[] =
    DASHES "There are not enough slots available in the system to satisfy "
           "the 9\nslots that were requested by the application.\n" DASHES;

/* The output for a text that arrives in pieces of n bytes; free() it. */
static char *pass(bm_mpirun_output *r, const char *words, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    *r = (bm_mpirun_output){0};
    for (size_t left = strlen(words); left > 0;) {
        size_t k = left < n ? left : n;
        bm_mpirun_output_pass(r, words, k, to);
        words += k;
        left -= k;
    }
    bm_mpirun_output_end(r, to);
    fclose(to);
    return text;
}

static void assert_passes(const char *words, const char *expected)
{
    for (size_t n = 1; n < 200; n++) {
        bm_mpirun_output r;
        char *got = pass(&r, words, n);

        assert_string_equal(got, expected);
        free(got);
    }
}

/* The concatenated texts; free() it. */
static char *join(const char *const *texts)
{
    char *all = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&all, &size);

    assert_non_null(to);
    for (; *texts != NULL; texts++)
        fputs(*texts, to);
    fclose(to);
    return all;
}

#define JOIN(...) join((const char *const[]){__VA_ARGS__, NULL})

static void test_a_notice_of_a_death_is_read_and_dropped(void **state)
{
    char *all = JOIN("block 1\n", exit_code, "block 2\n", death, "end\n");

    (void)state;
    assert_passes(all, "block 1\nblock 2\nend\n");
    for (size_t n = 1; n < 200; n++) {
        bm_mpirun_output r;

        free(pass(&r, all, n));
        assert_int_equal(r.rank, 1);
        assert_int_equal(r.signal, 9);
        assert_string_equal(r.host, "host-2");
    }
    free(all);
}

static void test_notices_that_repeat_a_rank_are_dropped(void **state)
{
    char *all = JOIN("bmuf: rank 1: no\n", exit_code, first_of_all,
                     "mpirun: Forwarding signal 10 to job\n");
    bm_mpirun_output r;

    (void)state;
    assert_passes(all, "bmuf: rank 1: no\n");
    free(pass(&r, all, 7));
    assert_int_equal(r.signal, 0);
    free(all);
}

static void test_a_notice_after_a_progress_line_is_dropped(void **state)
{
    (void)state;
    assert_passes("\rblock 1 \rmpirun: Forwarding signal 10 to job\n"
                  "\rblock 2 \rmpirun: Forwarding signal 10 to job\n"
                  "\r        \rwords\n",
                  "\rblock 1 \r\rblock 2 \r\r        \rwords\n");
}

static void test_other_notices_pass(void **state)
{
    (void)state;
    assert_passes(slots, slots);
}

static void test_other_output_passes(void **state)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "a line\n",
                                        "no end",
                                        "-",
                                        "-------\n",
                                        "- item\n",
                                        "\r 1 %\033[K\r 2 %\033[K",
                                        "mpirun: what\n",
                                        "mpi",
                                        "--- a ---\nb\n",
                                        "m\n-\nx\n"};

    (void)state;
    FOR_EACH (i, texts)
        assert_passes(texts[i], texts[i]);
}

static void test_half_a_notice_passes_at_the_end(void **state)
{
    static const char half[] = DASHES "half a remark";

    (void)state;
    assert_passes(half, half);
}

static void test_a_line_without_end_passes(void **state)
{
    char *all = calloc(1, 20001);

    (void)state;
    assert_non_null(all);
    memset(all, '-', 20000);
    assert_passes(all, all);
    memcpy(all, DASHES, sizeof DASHES - 1);
    assert_passes(all, all);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_notice_of_a_death_is_read_and_dropped),
        cmocka_unit_test(test_notices_that_repeat_a_rank_are_dropped),
        cmocka_unit_test(test_a_notice_after_a_progress_line_is_dropped),
        cmocka_unit_test(test_other_notices_pass),
        cmocka_unit_test(test_other_output_passes),
        cmocka_unit_test(test_half_a_notice_passes_at_the_end),
        cmocka_unit_test(test_a_line_without_end_passes),
    };

    return RUN_GROUP("mpirun_output", tests);
}
