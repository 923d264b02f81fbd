/*
 * The line of progress: on a terminal redrawn in place, never wrapped, gone at
 * the end, with all messages above it; elsewhere a plain line for a block.
 */
#include "tests/command.h"
#include "tests/folder.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 3, BLOCKS = 3 }; /* of tiny.ini */

/* What a terminal of unlimited width shows in the end. */
typedef struct screen {
    char lines[100][600];
    size_t n, column;
} screen;

static void put(screen *s, char c)
{
    char *line = s->lines[s->n];

    assert_true(s->column + 1 < sizeof s->lines[0]);
    line[s->column++] = c;
}

static screen *show(const char *text)
{
    screen *s = calloc(1, sizeof *s);

    assert_non_null(s);
    for (; *text != '\0'; text++) {
        if (*text == '\r') {
            s->column = 0;
        } else if (*text == '\n') {
            s->column = 0;
            assert_true(++s->n < sizeof s->lines / sizeof s->lines[0]);
        } else if (strncmp(text, "\033[K", 3) == 0) {
            memset(s->lines[s->n] + s->column, 0,
                   sizeof s->lines[0] - s->column);
            text += 2;
        } else {
            assert_true(*text >= ' ' && *text <= '~'); /* no other control */
            put(s, *text);
        }
    }
    return s;
}

/* How many lines begin and go on so. */
static int lines_with(const screen *s, const char *words)
{
    int n = 0;

    for (size_t i = 0; i <= s->n; i++)
        n += strstr(s->lines[i], words) != NULL;
    return n;
}

static outcome train_at(int columns, const char *term, const char *out,
                        const char *ranks)
{
    const char *words[] = {"train", "tiny.ini", "--out", out,
                           "-n",    ranks,      "--set", "sgd.momentum=0.9",
                           NULL};
    outcome o = command_run(
        &(command){.words = words, .columns = columns, .term = term});

    assert_code(o, 0);
    return o;
}

/* Draws in place, beginning with the first block: twice or more, and each time
 * no wider than leaves the last column free, where a terminal would wrap. */
static void assert_redrawn(const char *text, size_t columns)
{
    const char *at = strstr(text, "\repoch ");
    int n = 0;

    assert_non_null(at);
    assert_true(strncmp(at, "\repoch 1/3 block 1/", 19) == 0);
    for (; at != NULL; at = strstr(at, "\repoch "), n++) {
        size_t length = strcspn(++at, "\r\n\033");

        assert_true(length < columns);
        assert_true(strncmp(at + length, "\033[K", 3) == 0);
    }
    assert_true(n >= 2);
}

static void assert_messages_survive(const char *text)
{
    screen *s = show(text);

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        char words[60];

        snprintf(words, sizeof words, "Z note r0 epoch %d/%d: dev loss ", epoch,
                 EPOCHS);
        assert_int_equal(lines_with(s, words), 1);
    }
    assert_int_equal(lines_with(s, "Z warning r0 sgd.momentum = 0.9"), 1);
    assert_int_equal(lines_with(s, "2.linear "), 1);
    assert_int_equal(lines_with(s, "digest    "), 1);
    assert_int_equal(lines_with(s, " block "), 0); /* the bar is gone */
    free(s);
}

static void assert_draws_at(int columns, const char *ranks)
{
    char out[20];
    outcome o;

    snprintf(out, sizeof out, "drawn-%d-%s", columns, ranks);
    o = train_at(columns, NULL, out, ranks);
    assert_redrawn(o.out, (size_t)columns);
    assert_messages_survive(o.out);
}

static void test_one_line_is_redrawn_in_place(void **_)
{
    (void)_;
    assert_draws_at(20, "1");
    assert_draws_at(80, "1");
    assert_draws_at(200, "1");
}

/* The ranks write into a pipe of the supervisor. */
static void test_ranks_draw_on_the_supervisors_terminal(void **_)
{
    (void)_;
    assert_draws_at(20, "2");
    assert_draws_at(200, "2");
}

static void test_a_wide_terminal_is_told_everything(void **_)
{
    outcome o = train_at(200, NULL, "wide", "1");
    const char *last = "";

    (void)_;
    for (const char *at = o.out; (at = strstr(at, "\repoch ")) != NULL; at++)
        last = at + 1;
    assert_true(strncmp(last, "epoch 3/3 block 3/3 100% ", 25) == 0);
    assert_says(last, "k frames/s  loss ");
    assert_says(last, "%  2 workers\033[K");
}

static void assert_plain(const char *text)
{
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\b'));
    for (int epoch = 1; epoch <= EPOCHS; epoch++)
        for (int block = 1; block <= BLOCKS; block++) {
            char words[60];

            snprintf(words, sizeof words,
                     "Z note r0 epoch %d/%d block %d/%d loss ", epoch, EPOCHS,
                     block, BLOCKS);
            assert_int_equal(count_of(text, words), 1);
        }
}

static void test_without_a_terminal_a_block_is_a_line(void **_)
{
    static const char *const ranks[] = {"1", "2"};

    (void)_;
    FOR_EACH (i, ranks) {
        char out[20];
        outcome o;

        snprintf(out, sizeof out, "plain-%zu", i);
        o = train_at(0, NULL, out, ranks[i]);
        assert_plain(o.err);
        assert_null(strchr(o.err, '\r'));
        assert_null(strchr(o.out, '\033'));
        assert_null(strchr(o.out, '\r'));
    }
}

static void test_a_dumb_terminal_is_none(void **_)
{
    outcome o = train_at(80, "dumb", "dumb", "1");

    (void)_;
    assert_plain(o.out);
    assert_int_equal(count_of(o.out, "\r"), count_of(o.out, "\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line_is_redrawn_in_place),
        cmocka_unit_test(test_ranks_draw_on_the_supervisors_terminal),
        cmocka_unit_test(test_a_wide_terminal_is_told_everything),
        cmocka_unit_test(test_without_a_terminal_a_block_is_a_line),
        cmocka_unit_test(test_a_dumb_terminal_is_none),
    };
    return cmocka_run_group_tests_name("progress", tests, make_corpus,
                                       folder_remove);
}
