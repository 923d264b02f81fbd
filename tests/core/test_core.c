/* Random numbers, files that appear whole, words and rows. */
#include "core/clock.h"
#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/printable.h"
#include "core/rng.h"
#include "core/shell_word.h"
#include "core/sort.h"
#include "core/words.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- random numbers -------------------------------------------------------
 */

static void test_numbers_match_splitmix64(void **state)
{
    /* The reference implementation's first outputs for seed 1234567. */
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    bm_rng rng = {1234567, 0};

    (void)state;
    FOR_EACH (k, known) {
        assert_true(bm_rng_at(1234567, k) == known[k]);
        assert_true(bm_rng_bits(&rng) == known[k]);
    }
}

static void test_a_stream_depends_on_seed_name_and_worker(void **state)
{
    bm_rng rng = bm_rng_make(1, "dropout", 2), again = rng;
    uint64_t keys[] = {rng.key,
                       bm_rng_make(2, "dropout", 2).key,
                       bm_rng_make(1, "dropout", 3).key,
                       bm_rng_make(1, "weights", 2).key,
                       bm_rng_make(1, "dropou", 2).key,
                       bm_rng_make(1, "", 2).key,
                       bm_rng_make(2, "dropout", 1).key,
                       bm_rng_fork(rng.key, 0),
                       bm_rng_fork(rng.key, 1),
                       bm_rng_fork(bm_rng_fork(rng.key, 0), 1),
                       bm_rng_fork(bm_rng_fork(rng.key, 1), 0)};

    (void)state;
    FOR_EACH (i, keys)
        for (size_t k = 0; k < i; k++)
            assert_true(keys[i] != keys[k]);
    for (int i = 0; i < 10; i++)
        bm_rng_uniform(&rng);
    again.next = 10; /* a restart needs only the count */
    for (int i = 0; i < 10; i++)
        assert_true(bm_rng_bits(&rng) == bm_rng_bits(&again));
}

static void test_uniform_numbers_are_uniform(void **state)
{
    enum { CELLS = 64, DRAWS = 64000 };
    const double mean = (double)DRAWS / CELLS;
    bm_rng rng = bm_rng_make(5, "test", 0);
    int cell[CELLS] = {0};
    double chi = 0, sum = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double x = bm_rng_uniform(&rng);
        assert_true(x >= 0 && x < 1);
        cell[(int)(x * CELLS)]++;
        sum += x;
    }
    for (int i = 0; i < CELLS; i++)
        chi += pow(cell[i] - mean, 2) / mean;
    /* chi-square of 63 degrees of freedom: 63 +- 11.2; five sigma. */
    assert_true(chi > 63 - 56 && chi < 63 + 56);
    assert_true(near(sum / DRAWS, 0.5, 5 * sqrt(1.0 / 12 / DRAWS)));
}

static void test_normal_numbers_have_their_moments(void **state)
{
    enum { DRAWS = 100000 };
    bm_rng rng = bm_rng_make(6, "test", 0);
    double m1 = 0, m2 = 0, m4 = 0, beyond = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double x = bm_rng_normal(&rng);
        assert_true(isfinite(x));
        m1 += x / DRAWS;
        m2 += x * x / DRAWS;
        m4 += pow(x, 4) / DRAWS;
        beyond += (fabs(x) > 2) / (double)DRAWS;
    }
    /* Variances of the estimates: 1, 2 and 96 over the number of draws. */
    assert_true(fabs(m1) < 5 * sqrt(1.0 / DRAWS));
    assert_true(fabs(m2 - 1) < 5 * sqrt(2.0 / DRAWS));
    assert_true(fabs(m4 - 3) < 5 * sqrt(96.0 / DRAWS));
    assert_true(fabs(beyond - erfc(sqrt(2))) < 5 * sqrt(0.0455 / DRAWS));
}

static void test_integers_are_below_n_and_uniform(void **state)
{
    enum { DRAWS = 70000 };
    static const uint64_t ends[] = {1, 2, 7, ((uint64_t)1 << 63) + 1,
                                    UINT64_MAX};
    bm_rng rng = bm_rng_make(7, "test", 0);
    int count[7] = {0}, high = 0;

    (void)state;
    FOR_EACH (i, ends)
        for (int k = 0; k < 1000; k++)
            assert_true(bm_rng_below(&rng, ends[i]) < ends[i]);
    for (int i = 0; i < DRAWS; i++) {
        count[bm_rng_below(&rng, 7)]++;
        /* x % n would fall below 2^62 in half of the cases, not a third. */
        high += bm_rng_below(&rng, (uint64_t)3 << 62) < (uint64_t)1 << 62;
    }
    for (int i = 0; i < 7; i++) /* sigma: sqrt(10000 * 6 / 7) = 93 */
        assert_true(abs(count[i] - DRAWS / 7) < 5 * 93);
    assert_true(fabs(high - DRAWS / 3.0) < 5 * sqrt(DRAWS * 2.0 / 9));
}

static void test_shuffles_are_uniform_permutations(void **state)
{
    enum { MANY = 1000, DRAWS = 24000 };
    bm_rng rng = bm_rng_make(8, "test", 0), again = rng;
    size_t x[MANY], y[MANY], small[4];
    bool seen[MANY] = {false};
    int count[256] = {0}, orders = 0;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        x[i] = y[i] = i;
    bm_rng_shuffle(&rng, x, MANY);
    bm_rng_shuffle(&again, y, MANY);
    assert_memory_equal(x, y, sizeof x);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(x[i] < MANY && !seen[x[i]]);
        seen[x[i]] = true;
    }
    for (int i = 0; i < DRAWS; i++) {
        for (size_t k = 0; k < 4; k++)
            small[k] = k;
        bm_rng_shuffle(&rng, small, 4);
        count[small[0] + 4 * small[1] + 16 * small[2] + 64 * small[3]]++;
    }
    FOR_EACH (i, count) {
        orders += count[i] > 0;
        assert_true(count[i] == 0 || abs(count[i] - DRAWS / 24) < 5 * 31);
    }
    assert_int_equal(orders, 24);
    bm_rng_shuffle(&rng, small, 0);
    bm_rng_shuffle(&rng, small, 1);
}

/* ---- files ----------------------------------------------------------------
 */

static void check_text(const char *path, const char *expected)
{
    char *text = NULL;
    size_t n = 0;

    assert_ok(bm_file_read(path, 1000, &text, &n));
    assert_int_equal(n, strlen(expected));
    assert_string_equal(text, expected);
    free(text);
}

static void test_files_are_written_and_read_back(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");

    (void)state;
    assert_ok(bm_file_write(path, "one", 3));
    check_text(path, "one");
    assert_ok(bm_file_write(path, "other", 5));
    check_text(path, "other");
    assert_ok(bm_file_write(path, "", 0));
    check_text(path, "");
    assert_int_equal(scratch_count(&s, false), 1);
    scratch_close(&s);
}

static void test_a_failed_write_keeps_the_old_file(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    char *much = calloc(1, 1 << 16);
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_file_write(path, "old", 3));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1 << 12, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = bm_file_write(path, much, 1 << 16);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    free(much);
    assert_int_equal(status, BM_ERR_IO);
    check_text(path, "old");
    assert_int_equal(scratch_count(&s, false), 1);

    assert_int_equal(bm_file_write(scratch_file(&s, "no/note"), "x", 1),
                     BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), s.path));
    assert_non_null(strstr(bm_last_error(), "/no/note cannot be created"));
    assert_non_null(strstr(bm_last_error(), "there is no directory"));
    assert_int_equal(bm_file_write(s.path, "x", 1), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "is a directory"));
    assert_int_equal(bm_file_write("/dev/null", "x", 1), BM_ERR_CREATE);
    assert_int_equal(bm_file_write("", "x", 1), BM_ERR_CREATE);
    check_text(path, "old");
    scratch_close(&s);
}

/* Two writers of one file, and links with names that a writer might choose. */
static void test_temporary_files_are_new_and_belong_to_one_writer(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note"), *other = NULL;
    bm_file_replacement one, two;
    const char *name = NULL;
    struct stat info;

    (void)state;
    other = scratch_file(&s, "other");
    spill(other, "mine", 4);
    assert_int_equal(symlink(other, scratch_file(&s, ".note.tmp")), 0);
    assert_ok(bm_file_replace_begin(&one, path));
    assert_ok(bm_file_replace_begin(&two, path));
    assert_string_not_equal(one.temporary, two.temporary);
    assert_int_equal(lstat(one.temporary, &info), 0);
    assert_true(S_ISREG(info.st_mode) && info.st_nlink == 1);
    name = strrchr(one.temporary, '/') + 1;
    assert_true(bm_file_is_temporary(name, "no", "te"));
    assert_false(bm_file_is_temporary(name, "note", "x"));
    assert_false(bm_file_is_temporary(name, "x", "note"));
    assert_false(bm_file_is_temporary(".note.tmp", "", ""));
    assert_false(bm_file_is_temporary("note", "", ""));
    assert_ok(bm_file_replace_write(&one, "one", 3));
    assert_ok(bm_file_replace_stream(&two));
    assert_true(fputs("two", two.stream) >= 0);
    assert_ok(bm_file_try(path)); /* removes no file but its own */
    assert_ok(bm_file_replace_commit(&one, true));
    bm_file_replace_abort(&one);
    check_text(path, "one");
    assert_ok(bm_file_replace_commit(&two, false));
    check_text(path, "two");
    assert_ok(bm_file_replace_begin(&one, path));
    bm_file_replace_abort(&one);
    check_text(path, "two");
    check_text(other, "mine");
    assert_int_equal(scratch_count(&s, false), 3);
    spill(scratch_file(&s, ".01234567.note.tmp"), "x", 1);
    spill(scratch_file(&s, ".01234567.mote.tmp"), "x", 1);
    assert_ok(bm_file_remove_temporaries(s.path, "no", "te"));
    assert_int_equal(scratch_count(&s, false), 4);
    assert_ok(bm_file_remove_temporaries(s.path, "", ""));
    assert_int_equal(scratch_count(&s, false), 3);
    scratch_close(&s);
}

/* A pipe without a writer: opening it would wait for one. */
static void test_only_regular_files_are_read(void **state)
{
    static const char *const kind[] = {"a pipe", "a socket", "a device",
                                       "a directory"};
    scratch s = scratch_open();
    const char *odd[] = {scratch_file(&s, "pipe"), scratch_file(&s, "socket"),
                         "/dev/zero", s.path};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = -1;
    char *text = NULL, words[100];
    size_t n = 0;

    (void)state;
    assert_int_equal(mkfifo(odd[0], 0600), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", odd[1]);
    assert_int_equal(
        bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    FOR_EACH (i, odd) {
        snprintf(words, sizeof words, "%s is %s, not a regular file", odd[i],
                 kind[i]);
        assert_int_equal(bm_file_open_regular(&fd, odd[i]), BM_ERR_MISSING);
        assert_string_equal(bm_last_message(), words);
        assert_int_equal(bm_file_read(odd[i], 10, &text, &n), BM_ERR_MISSING);
    }
    assert_int_equal(fd, -1);
    assert_null(text);
    close(listener);
    scratch_close(&s);
}

static void test_reading_fails_with_the_right_status(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");
    char *text = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(bm_file_read(path, 10, &text, &n), BM_ERR_MISSING);
    spill(path, "0123456789", 10);
    assert_int_equal(bm_file_read(path, 9, &text, &n), BM_ERR_FORMAT);
    assert_null(text);
    assert_ok(bm_file_read(path, 10, &text, &n));
    free(text);
    scratch_close(&s);
}

static void test_directories_are_made_with_their_parents(void **state)
{
    scratch s = scratch_open();
    char deep[6000];

    (void)state;
    assert_ok(bm_file_make_directory(scratch_file(&s, "a/b//c/")));
    assert_ok(bm_file_make_directory(scratch_file(&s, "a/b/c")));
    assert_true(bm_is_folder(scratch_file(&s, "a/b/c")));
    spill(scratch_file(&s, "file"), "", 0);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "file")),
                     BM_ERR_CREATE);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "file/d")),
                     BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "Not a directory"));
    assert_int_equal(symlink("nowhere", scratch_file(&s, "link")), 0);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "link")),
                     BM_ERR_CREATE);
    assert_non_null(
        strstr(bm_last_error(), "link is a link, but not to a folder"));
    assert_int_equal(bm_file_make_directory(""), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "the name of the folder is empty"));
    memset(deep, 'd', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(bm_file_make_directory(deep), BM_ERR_CREATE);
    assert_false(bm_is_folder(scratch_file(&s, "file")));
    assert_false(bm_is_folder(scratch_file(&s, "link")));
    assert_int_equal(symlink("a", scratch_file(&s, "good")), 0);
    assert_true(bm_is_folder(scratch_file(&s, "good")));
    rmdir(scratch_file(&s, "a/b/c"));
    rmdir(scratch_file(&s, "a/b"));
    scratch_close(&s);
}

/* ---- lists that grow ------------------------------------------------------ */

static void test_lists_grow_from_nothing(void **state)
{
    enum { N = 1000 };
    size_t room = 0, grown = 0, least = 0;
    int *list = NULL;

    (void)state;
    for (int i = 0; i < N; i++) {
        size_t before = room;

        assert_ok(bm_grow(&list, (size_t)i, &room, sizeof *list));
        assert_true(room > (size_t)i);
        assert_true(room == before || room >= 2 * before);
        grown += room != before;
        list[i] = i;
    }
    assert_true(grown <= 10); /* more than log2(N) */
    for (int i = 0; i < N; i++)
        assert_int_equal(list[i], i);
    least = 10 * room;
    assert_ok(bm_grow(&list, least, &room, sizeof *list));
    assert_true(room > least);
    assert_int_equal(list[N - 1], N - 1);
    free(list);
}

/* Numbers of bytes that a size_t or an object cannot have. */
static void test_a_list_that_is_too_large_stays_as_it_is(void **state)
{
    static const size_t n[] = {SIZE_MAX, SIZE_MAX / 8 + 2, PTRDIFF_MAX / 8};
    double x = 1, *list = &x;
    size_t room = 1;

    (void)state;
    FOR_EACH (i, n) {
        assert_int_equal(bm_grow(&list, n[i], &room, sizeof *list),
                         BM_ERR_MEMORY);
        assert_ptr_equal(list, &x);
        assert_int_equal(room, 1);
    }
    room = SIZE_MAX / 2 + 2; /* twice it is 2 */
    assert_int_equal(bm_grow(&list, room, &room, 1), BM_ERR_MEMORY);
    assert_ptr_equal(list, &x);
}

/* ---- printing texts of files ---------------------------------------------- */

static void test_control_characters_and_invalid_utf8_are_escaped(void **state)
{
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"", ""},
        {"lstm:20 \\ linear", "lstm:20 \\ linear"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\033[31mred\a\r\b", "\\x1b[31mred\\x07\\x0d\\x08"},
        {"a\nb\tc\x7f", "a\\nb\\tc\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* CSI in one character */
        /* NOLINTNEXTLINE(misc-misleading-bidirectional) */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* right to left */
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xc0\x8a", "\\xc0\\x8a"},                   /* too long a form */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* > 10ffff */
    };
    char out[64], *copy = NULL;

    (void)state;
    FOR_EACH (i, rows) {
        assert_string_equal(bm_printable(rows[i].text, out, sizeof out),
                            rows[i].printed);
        copy = bm_printable_copy(rows[i].text);
        assert_string_equal(copy, rows[i].printed);
        free(copy);
    }
    assert_string_equal(bm_printable_lines("a\nb\033", out, sizeof out),
                        "a\nb\\x1b");
    assert_string_equal(bm_printable("1234567", out, 8), "1234567");
    assert_string_equal(bm_printable("12345678", out, 8), "1234...");
    assert_string_equal(bm_printable("123\xc3\xa9\xc3\xa9", out, 8),
                        "123\xc3\xa9\xc3\xa9");
    assert_string_equal(bm_printable("123\xc3\xa9\xc3\xa9x", out, 8), "123...");
}

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

/* ---- kinds of files ------------------------------------------------------ */

/* The kinds of files with these n first bytes, and what to do with them. */
static void assert_kind(const char *bytes, size_t n, const char *binary,
                        const char *text, const char *use)
{
    char file[512] = {0};
    const char *kind = NULL;

    memcpy(file, bytes, n);
    write_bytes("kind", file, binary != NULL ? sizeof file : n);
    kind = bm_file_kind(in_folder("kind"));
    if (binary == NULL)
        assert_null(kind);
    else
        assert_string_equal(kind, binary);
    if (binary == NULL)
        kind = bm_text_kind(in_folder("kind"));
    assert_non_null(kind);
    if (text != NULL)
        assert_string_equal(kind, text);
    assert_non_null(strstr(bm_file_kind_use(kind), use));
}

static void test_kinds_of_files_are_told_by_their_first_bytes(void **state)
{
#define BYTES(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t n;
        const char *binary, *text, *use;
    } cases[] = {
        {BYTES("\x89PNG\r\n\x1a\n"), "a PNG image", NULL, "--images"},
        {BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file", NULL, "bmuf info"},
        {BYTES("II+\0\x8\0\0\0"), "a TIFF image", NULL, "--images"},
        {BYTES("P4\n10 2\n\x80\x40"), "a PBM image", NULL, "--images"},
        {BYTES("P5 # a comment\n37 11 255\nxyz"), "a PGM image", NULL,
         "--images"},
        {BYTES("P6 37 11 255\n\x1\x2"), "a PPM image", NULL, "--images"},
        {BYTES("RIFF\x24\0\0\0WAVEfmt "), "a WAV recording", NULL, "--audio"},
        {BYTES("fLaC\0"), "a FLAC recording", NULL, "--audio"},
        {BYTES("ID3\4\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xfb\x90\x64\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xf3\x88\xc4\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xfe{\0\"\0"), "a text in UTF-16", NULL, "iconv"},
        {BYTES("\xff\xfb\xf0\x64\0"), "a binary file", NULL, "text"},
        {BYTES("FORM\0\0\1\0AIFF"), "an AIFF recording", NULL, "--audio"},
        {BYTES("\x93NUMPY\1\0"), "a NumPy array", NULL, "--features"},
        {BYTES("PK\3\4....................\0\0\5\0\0\0a.npy"),
         "a NumPy archive (.npz)", NULL, "dump"},
        {BYTES("PK\3\4....................\0\0\5\0\0\0a.txt"), "a zip archive",
         NULL, "unpack"},
        {BYTES("\x40\0\0\0\0\0\0\0{\"__metadata__\""), "a safetensors file",
         NULL, "bmuf eval"},
        {BYTES("{\0\0\0\0\0\0\0{\"__metadata__\""), "a safetensors file", NULL,
         "bmuf eval"},
        {BYTES("\x1f\x8b\x08"), "a gzip file", NULL, "unpack"},
        {BYTES("u1 \0BFM "), "a Kaldi archive", NULL, "manifest"},
        {BYTES("\1\2\3\0"), "a binary file", NULL, "text"},
        {BYTES("\x8a\x9c\x10%\xff\x41"), "a binary file", NULL, "text"},
        {BYTES("\xef\xbb\xbf\n{\"id\": 1}\n"), NULL, "JSON", "manifest"},
        {BYTES("[{\"id\": 1}]\n"), NULL, "a JSON list", "brackets"},
        {BYTES("[\n{\"id\": 1}\n]\n"), NULL, "a JSON list", "brackets"},
        {BYTES("[data\ntrain = x\n"), NULL, "a configuration", "bmuf train"},
        {BYTES("bmuf-lm\n\1\0"), "a compact language model", NULL, "bmuf lm"},
        {BYTES("# mine\n\n[data]\nx = 1\n"), NULL, "a configuration",
         "bmuf train"},
        {BYTES("data.train = x\n"), NULL, "a configuration", "bmuf train"},
        {BYTES("u1 /wav/u1.wav\nu2 /wav/u2.wav\n"), NULL, "a Kaldi scp file",
         "manifest"},
        {BYTES("u1 raw.ark:12\n"), NULL, "a Kaldi scp file", "manifest"},
        {BYTES("u1 sph2pipe u1.sph |\n"), NULL, "a Kaldi scp file", "manifest"},
        {BYTES("u1 one or two\n"), NULL, "a text", "manifest"},
        {BYTES("x"), NULL, "a text", "manifest"},
        {BYTES("P1\nP2\n"), NULL, "a text", "manifest"},
        {BYTES("P2 640 480 of P2\n"), NULL, "a text", "manifest"},
        {BYTES("P5 640\n"), NULL, "a text", "manifest"},
    };
#undef BYTES
    static const char *const text_maps[][2] = {
        {"P1\n10 2\n1000000001 00000 00110", "a PBM image"},
        {"P2 # a comment\n3\n#another\n1 255\n0 1\n2\n", "a PGM image"},
        {"P3 1 1 255 0 127 255", "a PPM image"},
    };

    (void)state;
    FOR_EACH (k, cases)
        assert_kind(cases[k].bytes, cases[k].n, cases[k].binary, cases[k].text,
                    cases[k].use);
    FOR_EACH (k, text_maps) {
        write_text("kind", text_maps[k][0]);
        assert_string_equal(bm_file_kind(in_folder("kind")), text_maps[k][1]);
    }
    write_text("kind", "");
    assert_null(bm_file_kind(in_folder("kind")));
    assert_null(bm_text_kind(in_folder("kind")));
    assert_null(bm_file_kind(in_folder("none")));
    assert_null(bm_file_kind(in_folder("."))); /* and a pipe does not block */
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_null(bm_file_kind(in_folder("pipe")));
    assert_null(bm_text_kind(in_folder("pipe")));
}

/* ---- words ---------------------------------------------------------------
 */

static void test_numbers_are_sorted(void **state)
{
    static const double sorted[] = {-INFINITY, -2, 0, 0, 1e-300, 3};
    double x[] = {3, 0, -2, 1e-300, -INFINITY, 0};

    (void)state;
    bm_sort(x, 6);
    assert_memory_equal(x, sorted, sizeof x);
    bm_sort(NULL, 0);
}

static void test_a_plain_word_is_the_same_in_any_spelling(void **state)
{
    static const char *const forms[] = {"reduce_lr", "Reduce-LR",
                                        "REDUCELR..."};
    char plain[9];

    (void)state;
    FOR_EACH (i, forms) {
        bm_word_plain(forms[i], i == 2 ? 8 : 9, plain, sizeof plain);
        assert_string_equal(plain, "reducelr");
    }
    bm_word_plain("reduce_lr_on", 12, plain, 4); /* no room for more */
    assert_string_equal(plain, "red");
}

static void test_words_are_near_up_to_a_third_of_their_length(void **state)
{
    static const struct {
        const char *word, *near;
    } cases[] = {
        {"trian", "train"}, /* a swap is one mistake */
        {"trai", "train"},
        {"eva", "eval"},
        {"evil", "eval"},
        {"exlpain", "explain"},
        {"explan", "explain"},
        {"scal", "scale"},
        {"decode", ""},
        {"version", ""},
        {"x", ""},
        {"run", ""},
        {"", ""},
        {"TRAIN", "train"}, /* whatever the case */
        {"Evla", "eval"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        char near[32] = "?";
        bool found = bm_nearest_word(cases[i].word, "train eval explain scale ",
                                     near, sizeof near);

        assert_string_equal(near, cases[i].near);
        assert_true(found == (near[0] != '\0'));
    }
    assert_int_equal(bm_word_distance("abcd", "badc"), 2);
    assert_int_equal(bm_word_distance("kitten", "sitting"), 3);
    assert_int_equal(bm_word_distance("", "abc"), 3);
    assert_int_equal(bm_word_distance("abc", ""), 3);
}

static void test_paths_in_commands_are_quoted_where_needed(void **state)
{
    char longest[2 * PATH_MAX];

    (void)state;
    assert_string_equal(bm_shell_word("run/1").text, "run/1");
    assert_string_equal(bm_shell_word("run 1").text, "'run 1'");
    assert_string_equal(bm_shell_word("it's").text, "'it'\\''s'");
    assert_string_equal(bm_shell_word("").text, "''");
    memset(longest, ' ', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_true(bm_ends_with(bm_shell_word(longest).text, " '"));
}

static void test_nouns_have_their_plurals(void **state)
{
    (void)state;
    assert_string_equal(bm_count_noun(1, "sequence").text, "1 sequence");
    assert_string_equal(bm_count_noun(0, "sequence").text, "0 sequences");
    assert_string_equal(bm_count_noun(2, "mini-batch").text, "2 mini-batches");
    assert_string_equal(bm_count_noun(2, "epoch").text, "2 epochs");
    assert_string_equal(bm_count_noun(12, "class").text, "12 classes");
    assert_string_equal(bm_count_noun(3, "frequency").text, "3 frequencies");
    assert_string_equal(bm_count_noun(3, "key").text, "3 keys");
    assert_string_equal(bm_count_noun(1, "class").text, "1 class");
    assert_string_equal(bm_count_noun(5000000000, "frame").text,
                        "5000000000 frames");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_sorted),
        cmocka_unit_test(test_a_plain_word_is_the_same_in_any_spelling),
        cmocka_unit_test(test_numbers_match_splitmix64),
        cmocka_unit_test(test_a_stream_depends_on_seed_name_and_worker),
        cmocka_unit_test(test_uniform_numbers_are_uniform),
        cmocka_unit_test(test_normal_numbers_have_their_moments),
        cmocka_unit_test(test_integers_are_below_n_and_uniform),
        cmocka_unit_test(test_shuffles_are_uniform_permutations),
        cmocka_unit_test(test_files_are_written_and_read_back),
        cmocka_unit_test(test_a_failed_write_keeps_the_old_file),
        cmocka_unit_test(test_temporary_files_are_new_and_belong_to_one_writer),
        cmocka_unit_test(test_only_regular_files_are_read),
        cmocka_unit_test(test_reading_fails_with_the_right_status),
        cmocka_unit_test(test_directories_are_made_with_their_parents),
        cmocka_unit_test(test_lists_grow_from_nothing),
        cmocka_unit_test(test_a_list_that_is_too_large_stays_as_it_is),
        cmocka_unit_test(test_control_characters_and_invalid_utf8_are_escaped),
        cmocka_unit_test(test_lines_of_a_journal_are_json),
        cmocka_unit_test(test_an_incomplete_line_of_a_killed_job_is_ended),
        cmocka_unit_test(test_lines_of_a_full_journal_are_whole_or_absent),
        cmocka_unit_test(test_a_journal_may_be_null_but_must_be_created),
        cmocka_unit_test(test_a_terminal_has_words_without_time_and_rank),
        cmocka_unit_test(test_notes_of_rank_0_and_all_warnings_are_logged),
        cmocka_unit_test(test_words_are_near_up_to_a_third_of_their_length),
        cmocka_unit_test(test_paths_in_commands_are_quoted_where_needed),
        cmocka_unit_test(test_nouns_have_their_plurals),
        cmocka_unit_test(test_the_clock_counts_seconds),
        cmocka_unit_test(test_kinds_of_files_are_told_by_their_first_bytes),
    };
    return cmocka_run_group_tests_name("core", tests, folder_make,
                                       folder_remove);
}
