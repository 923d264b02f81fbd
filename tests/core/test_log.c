/* The journal, messages on stderr, the clock. */
#include "core/clock.h"
#include "core/log.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the journal ----------------------------------------------------------
 */

/* Line k as an object; NULL if it does not exist or is not JSON. */
static json_t *row_of(const char *text, int k)
{
    for (; k > 0 && text != NULL; k--) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL ? json_loadb(text, strcspn(text, "\n"),
                                     JSON_REJECT_DUPLICATES, NULL)
                        : NULL;
}

static void test_lines_of_a_journal_are_json(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "journal");
    bm_journal *j = NULL;
    json_t *row = NULL;
    char *text = NULL;
    size_t n = 0;
    const bm_field fields[] = {{"blocks", 12, NULL},
                               {"frames", 0x1p52 + 1, NULL},
                               {"loss", 0.1, NULL},
                               {"rate", 1e-30, NULL},
                               {"odd", NAN, NULL},
                               {"far", -INFINITY, NULL},
                               {"reason", 0, "a \"b\"\n\\ \xc3\xa4"},
                               {NULL, 0, NULL}};

    (void)state;
    assert_ok(bm_journal_open(&j, path));
    bm_journal_write(j, "end", fields);
    bm_journal_close(j);
    text = slurp(path, &n);
    assert_ptr_equal(strchr(text, '\n'), text + n - 1); /* one line */
    row = row_of(text, 0);
    assert_int_equal(json_object_size(row), 2 + 7);
    assert_string_equal(json_string_value(json_object_get(row, "event")),
                        "end");
    assert_int_equal(json_string_length(json_object_get(row, "time")), 24);
    assert_int_equal(json_integer_value(json_object_get(row, "blocks")), 12);
    assert_true(json_integer_value(json_object_get(row, "frames")) ==
                ((int64_t)1 << 52) + 1);
    assert_true(near(json_real_value(json_object_get(row, "loss")), 0.1, 1e-9));
    assert_true(json_real_value(json_object_get(row, "rate")) > 0.999e-30);
    assert_true(json_is_null(json_object_get(row, "odd")));
    assert_true(json_is_null(json_object_get(row, "far")));
    assert_string_equal(json_string_value(json_object_get(row, "reason")),
                        fields[6].text);
    json_decref(row);
    free(text);
    scratch_close(&s);
}

static void test_an_incomplete_line_of_a_killed_job_is_ended(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "journal");
    static const char left[] = "{\"event\":\"start\"}\n{\"event\":\"blo";
    bm_journal *j = NULL;
    json_t *row = NULL;
    char *text = NULL;
    size_t n = 0;

    (void)state;
    spill(path, left, sizeof left - 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(bm_journal_open(&j, path));
        bm_journal_write(j, i == 0 ? "first" : "second",
                         (bm_field[]){{NULL, 0, NULL}});
        bm_journal_close(j);
    }
    text = slurp(path, &n);
    assert_memory_equal(text, left, sizeof left - 1);
    assert_null(row_of(text, 1));
    for (int k = 0; k < 4; k += k == 0 ? 2 : 1) {
        row = row_of(text, k);
        assert_string_equal(json_string_value(json_object_get(row, "event")),
                            k == 0   ? "start"
                            : k == 2 ? "first"
                                     : "second");
        json_decref(row);
    }
    free(text);
    scratch_close(&s);
}

static void test_a_journal_may_be_null_but_must_be_created(void **state)
{
    scratch s = scratch_open();
    bm_journal *j = NULL;

    (void)state;
    bm_journal_write(NULL, "end", (bm_field[]){{NULL, 0, NULL}});
    bm_journal_close(NULL);
    assert_int_equal(bm_journal_open(&j, scratch_file(&s, "no/journal")),
                     BM_ERR_CREATE);
    scratch_close(&s);
}

/* ---- messages -------------------------------------------------------------
 */

static int hooks_called;

static void count_hook(void)
{
    hooks_called++;
}

/* stderr goes to the file at `path`; returns what it was. */
static int redirect(const char *path)
{
    int kept = dup(STDERR_FILENO), fd = 0;

    fflush(stderr);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
    return kept;
}

static char *restore(int kept, const char *path)
{
    size_t n = 0;

    fflush(stderr);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    return slurp(path, &n);
}

/* A limit on the size of the file takes the place of a full disk: write() first
 * takes a part of a line, then nothing. */
static void test_lines_of_a_full_journal_are_whole_or_absent(void **state)
{
    static const bm_field none[] = {{NULL, 0, NULL}};
    static const char *const events[] = {"x", "lost", "y", "z"};
    enum { FIT = 20, LOST = 4 };
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "journal");
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, full;
    bm_journal *j = NULL;
    json_t *row = NULL;
    char *text = NULL, *said = NULL;
    size_t n = 0, line = 0;
    int kept = -1;

    (void)state;
    assert_ok(bm_journal_open(&j, path));
    bm_journal_write(j, "x", none);
    free(slurp(path, &line));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    full = (struct rlimit){FIT * line + line / 2, before.rlim_max};
    kept = redirect(scratch_file(&s, "said"));
    (void)setrlimit(RLIMIT_FSIZE, &full);
    for (int i = 1; i < FIT + LOST; i++)
        bm_journal_write(j, "x", none);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    said = restore(kept, scratch_file(&s, "said"));
    signal(SIGXFSZ, handler);
    assert_non_null(strstr(said, "cannot write the journal, lines are lost: "));
    assert_non_null(strstr(said, strerror(EFBIG)));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* once */
    free(said);
    free(slurp(path, &n));
    assert_int_equal(n, FIT * line);

    bm_journal_write(j, "y", none);
    bm_journal_write(j, "z", none);
    bm_journal_close(j);
    text = slurp(path, &n);
    FOR_EACH (k, events) {
        row = row_of(text, FIT - 1 + (int)k);
        assert_non_null(row);
        assert_string_equal(json_string_value(json_object_get(row, "event")),
                            events[k]);
        assert_int_equal(json_integer_value(json_object_get(row, "lines")),
                         k == 1 ? LOST : 0);
        json_decref(row);
    }
    assert_null(row_of(text, FIT + 3));
    free(text);
    scratch_close(&s);
}

/* The stderr of a rank that logs a warning and a note; the journal gets the
 * first warning. */
static char *logged_by(const char *path, int rank, bm_journal *journal)
{
    int kept = redirect(path);

    bm_log_setup(rank);
    bm_log_hook(count_hook, count_hook);
    bm_log_journal(journal);
    bm_log(BM_WARNING, "disk %d", 1);
    bm_log(BM_NOTE, "disk %d", 2);
    bm_log_journal(NULL);
    bm_log(BM_WARNING, "disk %d", 1);
    bm_log_hook(NULL, NULL);
    bm_log_setup(0);
    return restore(kept, path);
}

/* A message of each level, by this rank. */
static void assert_prints(bm_log_style style, int rank, const char *expected)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "said");
    int kept = redirect(path);
    char *text = NULL;

    bm_log_setup(rank);
    bm_log_use_style(&style);
    for (int level = BM_ERROR; level <= BM_DETAIL; level++)
        bm_log((bm_level)level, "words");
    bm_log_setup(0);
    bm_log_use_style(&(bm_log_style){.most = BM_NOTE});
    text = restore(kept, path);
    assert_string_equal(text, expected);
    free(text);
    scratch_close(&s);
}

static void test_a_terminal_has_words_without_time_and_rank(void **state)
{
    (void)state;
    assert_prints((bm_log_style){.most = BM_NOTE, .terminal = true}, 0,
                  "error: words\nwarning: words\nwords\n");
    assert_prints((bm_log_style){.most = BM_NOTE, .terminal = true}, 3,
                  "error: words\nwarning: rank 3: words\n");
    assert_prints((bm_log_style){.most = BM_WARNING, .terminal = true}, 0,
                  "error: words\nwarning: words\n");
    assert_prints((bm_log_style){.most = BM_DETAIL, .terminal = true}, 0,
                  "error: words\nwarning: words\nwords\nwords\n");
    assert_prints(
        (bm_log_style){.most = BM_NOTE, .terminal = true, .colour = true}, 0,
        "\033[1;31merror\033[m: words\n\033[1;33mwarning\033[m: words\n"
        "words\n");
}

static void test_notes_of_rank_0_and_all_warnings_are_logged(void **state)
{
    static const char *const said[] = {[0] = "121", [3] = "11"};
    static const char *const names[] = {"warning", "note"};
    scratch s = scratch_open();
    char expected[40];

    (void)state;
    for (int rank = 0; rank <= 3; rank += 3) {
        char *text = NULL, *line = NULL;
        bm_journal *j = NULL;
        json_t *row = NULL;

        hooks_called = 0;
        if (rank == 0)
            assert_ok(bm_journal_open(&j, scratch_file(&s, "journal")));
        text = logged_by(scratch_file(&s, "said"), rank, j);
        bm_journal_close(j);
        line = text;
        for (const char *k = said[rank]; *k != '\0'; k++) {
            snprintf(expected, sizeof expected, " %s r%d disk %c\n",
                     names[*k - '1'], rank, *k);
            assert_int_equal(line[10], 'T');
            assert_int_equal(line[23], 'Z');
            assert_memory_equal(line + 24, expected, strlen(expected));
            line += 24 + strlen(expected);
        }
        assert_int_equal(*line, '\0');
        assert_int_equal(hooks_called, 2 * (int)strlen(said[rank]));
        free(text);
        if (rank > 0)
            continue;
        row = json_load_file(scratch_file(&s, "journal"), 0, NULL);
        assert_non_null(row); /* one line: one warning */
        assert_string_equal(json_string_value(json_object_get(row, "event")),
                            "warning");
        assert_string_equal(json_string_value(json_object_get(row, "message")),
                            "disk 1");
        json_decref(row);
    }
    scratch_close(&s);
}

static void test_the_clock_counts_seconds(void **state)
{
    const struct timespec nap = {0, 20000000};
    double then = bm_clock();

    (void)state;
    assert_int_equal(nanosleep(&nap, NULL), 0);
    assert_true(bm_clock() - then >= 0.02);
    assert_true(bm_clock() - then < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_a_journal_are_json),
        cmocka_unit_test(test_an_incomplete_line_of_a_killed_job_is_ended),
        cmocka_unit_test(test_lines_of_a_full_journal_are_whole_or_absent),
        cmocka_unit_test(test_a_journal_may_be_null_but_must_be_created),
        cmocka_unit_test(test_a_terminal_has_words_without_time_and_rank),
        cmocka_unit_test(test_notes_of_rank_0_and_all_warnings_are_logged),
        cmocka_unit_test(test_the_clock_counts_seconds),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
