/*
 * Figures: ticks are round numbers, marks are where the numbers say, texts are
 * escaped, and labels stay within the paper.
 */
#include "cli/plot/markup.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_parts.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- axes --------------------------------------------------------------- */

static bm_plot_axis axis_of(bm_plot_scale scale, double least, double most)
{
    return (bm_plot_axis){.scale = scale, .least = least, .most = most};
}

/* "0 2 4": the labels of an axis. */
static const char *labels_of(bm_plot_axis a, size_t wanted)
{
    static char text[1000];
    bm_plot_tick ticks[BM_MOST_TICKS];
    size_t n = bm_plot_axis_ticks(&a, wanted, ticks), length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || ticks[i].at > ticks[i - 1].at);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s",
                                   i > 0 ? " " : "", ticks[i].label);
    }
    return text;
}

static void test_ticks_are_round_numbers(void **_)
{
    bm_plot_axis percent = axis_of(BM_PLOT_LINEAR, 0, 0.35);

    (void)_;
    percent.percent = true;
    assert_string_equal(labels_of(axis_of(BM_PLOT_LINEAR, -1, 9), 5),
                        "0 2 4 6 8");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LINEAR, 0.12, 0.31), 5),
                        "0.15 0.2 0.25 0.3");
    assert_string_equal(labels_of(percent, 4), "0 % 10 % 20 % 30 %");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LINEAR, 0, 40000), 4),
                        "0 10k 20k 30k 40k");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LOG, 0.03, 3), 6),
                        "0.05 0.1 0.2 0.5 1 2");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LOG, 1, 1e8), 5),
                        "1 100 10k 1M 100M");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LOG2, 1, 16), 8),
                        "1 2 4 8 16");
    assert_string_equal(labels_of(axis_of(BM_PLOT_LOGIT, 0.4, 0.992), 8),
                        "0.5 0.75 0.9 0.95 0.98 0.99");
}

/* Any range and number of ticks gives ticks within it; no more than twice as
 * many on a linear axis. */
static void test_ticks_are_within_any_range(void **_)
{
    (void)_;
    for (int k = -12; k <= 12; k++)
        for (int part = 0; part < 25; part++)
            for (size_t wanted = 2; wanted < 12; wanted++) {
                double span = 1 + 0.37 * part;
                bm_plot_axis a = axis_of(BM_PLOT_LINEAR, 3 * pow(10, k),
                                         (3 + span) * pow(10, k));
                bm_plot_tick ticks[BM_MOST_TICKS];
                size_t n = bm_plot_axis_ticks(&a, wanted, ticks);

                assert_true(n >= 1 && n <= 2 * wanted);
                for (size_t i = 0; i < n; i++)
                    assert_true(bm_plot_axis_place(&a, ticks[i].at) >= 0 &&
                                bm_plot_axis_place(&a, ticks[i].at) <= 1);
            }
}

static void test_places_follow_the_scale(void **_)
{
    bm_plot_axis linear = axis_of(BM_PLOT_LINEAR, 2, 4),
                 log = axis_of(BM_PLOT_LOG, 1, 100);
    bm_plot_axis logit = axis_of(BM_PLOT_LOGIT, 0.1, 0.9);

    (void)_;
    assert_true(near(bm_plot_axis_place(&linear, 2.5), 0.25, 1e-12));
    assert_true(near(bm_plot_axis_place(&log, 10), 0.5, 1e-12));
    assert_true(near(bm_plot_axis_place(&logit, 0.5), 0.5, 1e-12));
    assert_true(bm_plot_axis_place(&linear, 7) == 1);
    assert_false(bm_plot_axis_shows(&linear, NAN));
    assert_false(bm_plot_axis_shows(&log, 0));
    assert_false(bm_plot_axis_shows(&logit, 1));
}

static void test_ranges_contain_the_data(void **_)
{
    bm_plot_axis a = {.from_zero = true}, same = {0},
                 none = {.scale = BM_PLOT_LOG};

    (void)_;
    bm_plot_axis_fit(&a, 0.2, 0.8);
    assert_true(a.least == 0 && a.most > 0.8 && a.most < 0.9);
    bm_plot_axis_fit(&same, 5, 5);
    assert_true(same.least < 5 && same.most > 5);
    bm_plot_axis_fit(&none, NAN, NAN);
    assert_true(none.least > 0 && none.most > none.least);
}

/* ---- figures ------------------------------------------------------------ */

/* free() it */
static char *drawn(const bm_plot *p)
{
    static char *text;
    static size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    bm_plot_write(p, f);
    fclose(f);
    return text;
}

/* The numbers of the first thing of this form in the figure. */
static void numbers_after(const char *svg, const char *words, double *x,
                          double *y)
{
    const char *at = strstr(svg, words);

    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(words), "%lf %lf", x, y), 2);
}

/* A line over the whole range runs from corner to corner of the axes, which are
 * drawn as "M<left> <top>V<bottom>H<right>". */
static void test_a_line_is_where_its_numbers_say(void **_)
{
    double x[] = {0, 1, 2}, y[] = {0, 1, 4};
    bm_plot_series s = {.name = "squares", .n = 3, .x = x, .y = y, .colour = 1};
    bm_plot p = {.x = {.least = 0, .most = 2},
                 .y = {.least = 0, .most = 4},
                 .series = &s,
                 .n = 1};
    char *svg = drawn(&p);
    const char *axis = strstr(svg, "class='axis' d='M");
    double left = 0, top = 0, bottom = 0, right = 0, got[6] = {0};

    (void)_;
    assert_non_null(axis);
    assert_int_equal(sscanf(axis, "class='axis' d='M%lf %lfV%lfH%lf", &left,
                            &top, &bottom, &right),
                     4);
    axis = strstr(svg, "class='l1' d='M");
    assert_non_null(axis);
    assert_int_equal(sscanf(axis, "class='l1' d='M%lf %lfL%lf %lfL%lf %lf",
                            &got[0], &got[1], &got[2], &got[3], &got[4],
                            &got[5]),
                     6);
    assert_true(near(got[0], left, 0.1) && near(got[1], bottom, 0.1));
    assert_true(near(got[2], (left + right) / 2, 0.1));
    assert_true(near(got[3], bottom - (bottom - top) / 4, 0.1));
    assert_true(near(got[4], right, 0.1) && near(got[5], top, 0.1));
    free(svg);
}

static void test_a_gap_interrupts_a_line(void **_)
{
    double x[] = {0, 1, 2, 3, 4}, y[] = {1, NAN, 1, 2, INFINITY};
    bm_plot_series s = {.n = 5, .x = x, .y = y};
    bm_plot p = {.series = &s, .n = 1};
    char *svg = drawn(&p), *path = strstr(svg, "class='l0' d='");
    size_t moves = 0, lines = 0;

    (void)_;
    assert_non_null(path);
    for (path += 14; *path != '\''; path++) {
        moves += *path == 'M';
        lines += *path == 'L';
    }
    assert_int_equal(moves, 2);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(svg, "h0M")); /* the first is a dot */
    free(svg);
}

static void test_bars_and_cells_cover_their_ranges(void **_)
{
    double from[] = {0, 1}, to[] = {1, 4}, row[] = {0, 0}, end[] = {1, 1};
    double z[] = {1, 3};
    const char *names[] = {"run"};
    bm_plot_series bars = {
        .mark = BM_BARS, .n = 2, .x = from, .x_end = to, .y = row, .colour = 2};
    bm_plot_series cells = {.mark = BM_CELLS,
                            .n = 2,
                            .x = from,
                            .x_end = to,
                            .y = row,
                            .y_end = end,
                            .z = z};
    bm_plot p = {.x = {.least = 0, .most = 4},
                 .y = {.names = names, .n_names = 1},
                 .series = &bars,
                 .n = 1};
    bm_plot q = {.x = {.least = 0, .most = 4},
                 .y = {.least = 0, .most = 1},
                 .z = {.least = 1, .most = 3},
                 .series = &cells,
                 .n = 1};
    char *svg = drawn(&p), *map = drawn(&q), colour[8];
    const char *rect = strstr(svg, "<rect ");
    double x = 0, width = 0, more_x = 0, more = 0;

    (void)_;
    assert_non_null(rect);
    assert_int_equal(
        sscanf(rect, "<rect x='%lf' y='%*f' width='%lf'", &x, &width), 2);
    rect = strstr(rect + 1, "<rect ");
    assert_non_null(rect);
    assert_int_equal(
        sscanf(rect, "<rect x='%lf' y='%*f' width='%lf'", &more_x, &more), 2);
    assert_true(near(more_x, x + width, 0.11) && near(more, 3 * width, 0.21));
    assert_non_null(strstr(map, "fill='#440154'")); /* viridis begins */
    assert_non_null(strstr(map, "fill='#fde725'")); /* and ends so */
    assert_string_equal(bm_plot_sequential(0.5, colour), "#21918c");
    free(svg);
    free(map);
}

static void test_texts_are_escaped(void **_)
{
    double one[] = {1};
    bm_plot_series s = {.name = "a<b>&\"c'", .n = 1, .x = one, .y = one};
    bm_plot p = {.title = "</svg><script>\x01\xff", .series = &s, .n = 1};
    char *svg = drawn(&p);

    (void)_;
    assert_non_null(strstr(svg, "a&lt;b&gt;&amp;&quot;c&#39;"));
    assert_null(strstr(svg, "<script>"));
    assert_null(strchr(svg, '\x01'));
    assert_null(strchr(svg, '\xff'));
    free(svg);
}

/* Numbers of a damaged journal: the extremes of a double, each beside any
 * other. */
static void test_absurd_numbers_do_no_harm(void **_)
{
    static const double odd[] = {-1.7e308, 1.7e308, 0,     -0.0,    5e-324,
                                 1e99,     1e-99,   -1e99, 1,       0.5,
                                 INFINITY, NAN,     1e15,  1e15 + 1};
    enum { N = sizeof odd / sizeof odd[0] };

    (void)_;
    for (size_t i = 0; i < N * N; i++)
        for (bm_plot_scale scale = BM_PLOT_LINEAR; scale <= BM_PLOT_LOGIT;
             scale++) {
            double y[] = {odd[i / N], odd[i % N]};
            bm_plot_series s = {.n = 2, .x = y, .y = y};
            bm_plot p = {.x = {.scale = scale},
                         .y = {.scale = scale, .from_zero = i % 2 == 0},
                         .series = &s,
                         .n = 1};
            char *svg = drawn(&p);

            assert_null(strstr(svg, "nan"));
            assert_null(strstr(svg, "inf"));
            free(svg);
        }
}

static void test_nothing_to_draw_is_said(void **_)
{
    bm_plot none = {.title = "nothing", .y = {.scale = BM_PLOT_LOG}};
    char *svg = drawn(&none);

    (void)_;
    assert_non_null(strstr(svg, "no data"));
    assert_null(strstr(svg, "nan"));
    free(svg);
}

/* Twenty runs with long names: every label begins and ends on the paper. */
static void test_a_long_legend_stays_on_the_paper(void **_)
{
    double one[] = {1, 2}, width = 0, height = 0;
    char names[20][80];
    bm_plot_series s[20];
    bm_plot p = {.series = s, .n = 20};
    char *svg = NULL;

    (void)_;
    for (size_t i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "%0*zu", 5 + 3 * (int)i, i);
        s[i] = (bm_plot_series){
            .name = names[i], .colour = i, .n = 2, .x = one, .y = one};
    }
    svg = drawn(&p);
    numbers_after(svg, "viewBox='0 0 ", &width, &height);
    for (const char *t = strstr(svg, "<text x='"); t != NULL;
         t = strstr(t + 1, "<text x='")) {
        double x = 0, y = 0;

        assert_int_equal(sscanf(t, "<text x='%lf' y='%lf'", &x, &y), 2);
        assert_true(x >= 0 && x < width && y > 0 && y < height);
    }
    free(svg);
}

/* The line of a row crosses axis k at its place there, NaN interrupts it, and
 * the best row is the thick one. */
static void test_parallel_lines_cross_the_axes_at_their_numbers(void **_)
{
    const bm_plot_axis axes[] = {
        {.title = "eta", .least = 0, .most = 1},
        {.title = "rate", .scale = BM_PLOT_LOG, .least = 1, .most = 100},
        {.title = "error", .least = 0, .most = 1}};
    const double values[] = {0, 10, 0.5, 1, NAN, 0.25};
    bm_parallel p = {.axes = axes,
                     .n_axes = 3,
                     .n = 2,
                     .values = values,
                     .colour = 2,
                     .best = 0};
    char *text = NULL, *thick = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    double x[3], y[3];

    (void)_;
    assert_non_null(f);
    bm_parallel_write(&p, f);
    fclose(f);
    thick = strstr(text, "stroke-width:5;stroke-opacity:1' d='");
    assert_non_null(thick);
    assert_int_equal(sscanf(strstr(thick, "d='"), "d='M%lf %lfL%lf %lfL%lf %lf",
                            &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]),
                     6);
    assert_true(near(y[1], y[2], 0.1)); /* both in the middle */
    assert_true(y[0] > y[1]);
    assert_true(near(x[1] - x[0], x[2] - x[1], 0.11));
    assert_non_null(strstr(text, "stroke-width:1.5"));
    assert_non_null(strstr(text, ">rate</text>"));
    free(text);
}

static void test_a_file_is_a_whole_document(void **_)
{
    double one[] = {1, 2};
    bm_plot_series s = {.name = "run", .n = 2, .x = one, .y = one};
    bm_plot p[2] = {{.title = "first", .series = &s, .n = 1},
                    {.title = "second", .series = &s, .n = 1}};
    char *text = NULL;
    size_t size = 0;

    (void)_;
    assert_int_equal(bm_plot_file(in_folder("two.svg"), p, 2), BM_OK);
    text = slurp(in_folder("two.svg"), &size);
    assert_true(strncmp(text, "<svg xmlns='http://www.w3.org/2000/svg'", 38) ==
                0);
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_non_null(strstr(text, ">first</text>"));
    assert_non_null(strstr(text, ">second</text>"));
    assert_string_equal(text + size - 7, "</svg>\n");
    free(text);
    assert_int_equal(bm_plot_file(in_folder("no/two.svg"), p, 2),
                     BM_ERR_CREATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_are_round_numbers),
        cmocka_unit_test(test_ticks_are_within_any_range),
        cmocka_unit_test(test_places_follow_the_scale),
        cmocka_unit_test(test_ranges_contain_the_data),
        cmocka_unit_test(test_a_line_is_where_its_numbers_say),
        cmocka_unit_test(test_a_gap_interrupts_a_line),
        cmocka_unit_test(test_bars_and_cells_cover_their_ranges),
        cmocka_unit_test(test_texts_are_escaped),
        cmocka_unit_test(test_absurd_numbers_do_no_harm),
        cmocka_unit_test(test_nothing_to_draw_is_said),
        cmocka_unit_test(test_a_long_legend_stays_on_the_paper),
        cmocka_unit_test(test_parallel_lines_cross_the_axes_at_their_numbers),
        cmocka_unit_test(test_a_file_is_a_whole_document),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
