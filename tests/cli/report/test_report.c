/* bmuf compare and bmuf report, on runs that make some errors. */
#include "models/bootstrap.h"
#include "models/edit.h"
#include "tests/support/command.h"
#include "tests/support/evaluations.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- compare ------------------------------------------------------------ */

static json_t *run_of(const json_t *result, size_t k)
{
    return json_array_get(json_object_get(result, "runs"), k);
}

/* Errors of each sequence of a run, aligned here. */
static void count_errors(const char *run, bm_error_count count[N])
{
    char *text = NULL, *rest = NULL, *line = NULL;
    size_t size = 0;

    assert_code(BMUF("eval", run, "test", "--hyp", "c.trn"), 0);
    text = slurp(in_folder("c.trn"), &size);
    line = strtok_r(text, "\n", &rest);
    for (size_t k = 0; k < N; k++, line = strtok_r(NULL, "\n", &rest)) {
        const char *wanted = speech_text(k);
        int32_t ref[LONGEST], hyp[LONGEST];
        size_t n_ref = strlen(wanted), n_hyp = 0;
        bm_edits edits = {0};

        assert_non_null(line);
        assert_non_null(strstr(line, " (test-"));
        n_hyp = (size_t)(strstr(line, " (test-") - line);
        assert_true(n_ref < LONGEST && n_hyp < LONGEST);
        for (size_t i = 0; i < n_ref; i++)
            ref[i] = (unsigned char)wanted[i];
        for (size_t i = 0; i < n_hyp; i++)
            hyp[i] = (unsigned char)line[i];
        assert_ok(bm_edit(ref, n_ref, hyp, n_hyp, &edits));
        count[k] =
            (bm_error_count){(double)bm_edits_total(edits), (double)n_ref};
    }
    free(text);
}

static void test_compare_has_the_numbers_of_eval_and_of_paired_draws(void **_)
{
    json_t *all = result_of(BMUF("compare", "a", "b", "--json"));
    json_t *a = result_of(BMUF("eval", "a", "test", "--json"));
    json_t *b = result_of(BMUF("eval", "b", "test", "--json"));
    json_t *than = json_object_get(run_of(all, 1), "than_first");
    json_t *labels = json_object_get(than, "ler");
    bm_error_count count_a[N], count_b[N];
    bm_interval expected = {0};

    (void)_;
    assert_string_equal(text(all, "data"), "test");
    assert_true(number(all, "sequences") == N);
    assert_true(number(run_of(all, 0), "ler") == number(a, "ler"));
    assert_true(number(run_of(all, 1), "ler") == number(b, "ler"));
    assert_true(number(run_of(all, 1), "wer") == number(b, "wer"));
    assert_true(json_equal(json_object_get(run_of(all, 1), "ler_95"),
                           json_object_get(b, "ler_95")));
    assert_null(json_object_get(run_of(all, 0), "than_first"));
    count_errors("a", count_a);
    count_errors("b", count_b);
    assert_ok(bm_bootstrap_difference(count_a, count_b, N, &expected));
    assert_true(expected.low < expected.high);
    assert_true(near(number(labels, "difference"),
                     number(b, "ler") - number(a, "ler"), 1e-8));
    assert_true(near(number(labels, "low"), expected.low, 1e-8));
    assert_true(near(number(labels, "high"), expected.high, 1e-8));
    assert_true(
        near(number(labels, "probability_lower"), expected.below, 1e-8));
    json_decref(all);
    json_decref(a);
    json_decref(b);
}

/* Sequence k is of speaker k % 3 (make_speech). */
static void test_compare_draws_speakers(void **_)
{
    enum { SPEAKERS = 3 };
    outcome table = BMUF("compare", "a", "b", "--draw", "speakers");
    json_t *all =
        result_of(BMUF("compare", "a", "b", "--json", "--draw", "speakers"));
    json_t *labels =
        json_object_get(json_object_get(run_of(all, 1), "than_first"), "ler");
    bm_error_count count[2][N], of[2][SPEAKERS] = {{{0}}};
    bm_interval expected = {0};

    (void)_;
    count_errors("a", count[0]);
    count_errors("b", count[1]);
    for (size_t r = 0; r < 2; r++)
        for (size_t k = 0; k < N; k++) {
            of[r][k % SPEAKERS].errors += count[r][k].errors;
            of[r][k % SPEAKERS].total += count[r][k].total;
        }
    assert_ok(bm_bootstrap_difference(of[0], of[1], SPEAKERS, &expected));
    assert_true(near(number(labels, "low"), expected.low, 1e-8));
    assert_true(near(number(labels, "high"), expected.high, 1e-8));
    assert_ok(bm_bootstrap(of[1], SPEAKERS, &expected));
    assert_true(near(json_number_value(json_array_get(
                         json_object_get(run_of(all, 1), "ler_95"), 0)),
                     expected.low, 1e-8));
    assert_string_equal(text(all, "draw"), "speakers");
    assert_true(number(all, "speakers") == SPEAKERS);
    assert_code(table, 0);
    assert_says(table.out, "on test: 21 sequences\n"
                           "intervals from draws of 3 speakers\n");
    json_decref(all);
}

/* Those that differ, and no others. */
static void test_compare_lists_settings_that_differ(void **_)
{
    json_t *all = result_of(BMUF("compare", "a", "b", "--json"));
    json_t *of_a = json_object_get(run_of(all, 0), "settings");
    json_t *of_b = json_object_get(run_of(all, 1), "settings");
    outcome o = BMUF("compare", "a", "b", "a");

    (void)_;
    assert_int_equal(json_object_size(of_a), 2);
    assert_string_equal(text(of_a, "train.epochs"), "5");
    assert_string_equal(text(of_b, "train.epochs"), "4");
    assert_string_equal(text(of_b, "train.rate"), "0.04");
    assert_code(o, 0);
    assert_says(o.out, "train.rate                0.05  0.04  0.05");
    assert_says(o.out, "no difference in any sequence");
    assert_says(o.out, "word errors");
    json_decref(all);
}

static void test_ranks_do_not_change_a_comparison(void **_)
{
    outcome one = BMUF("compare", "a", "b", "--json");
    outcome two = BMUF_ON(2, "compare", "a", "b", "--json");

    (void)_;
    assert_code(one, 0);
    assert_code(two, 0);
    assert_string_equal(one.out, two.out);
}

static void test_compare_says_what_is_missing(void **_)
{
    (void)_;
    assert_fails(BMUF("compare", "a"), 64, "compare needs RUN RUN...");
    assert_fails(BMUF("compare", "a", "none", "--on", "test"), 66, "none");
    assert_fails(BMUF("compare", "a", "b", "--on", "nowhere"), 66, "nowhere");
    assert_fails(BMUF("compare", "a/model.safetensors", "b"), 66,
                 "a/model.safetensors names no data.dev", "--on DIR");
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "worded",
                     "--units", "words", "--set", "features.mels=8"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "w", "--set",
                     "data.train=worded", "--set", "data.dev=", "--set",
                     "train.epochs=1", "--set", "schedule.kind=constant"),
                0);
    assert_fails(BMUF("compare", "a", "w", "--on", "test"), 65,
                 "a and w cannot be compared on test: test has 5 characters, "
                 "the model w/model.safetensors has ",
                 " words; the first that differs is '<space>' in place of '");
}

/* ---- report ------------------------------------------------------------- */

/* The page, which is valid until the next call. */
static const char *page(const char *name)
{
    static char *text;
    size_t size = 0;

    free(text);
    text = slurp(in_folder(name), &size);
    assert_int_equal(strlen(text), size);
    return text;
}

/* Every element is closed, in the order in which they were opened. */
static void assert_balanced(const char *html)
{
    char open[64][16];
    size_t depth = 0;

    for (const char *at = strchr(html, '<'); at != NULL;
         at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        char name[16] = "";

        assert_non_null(end);
        if (at[1] == '!' || end[-1] == '/')
            continue;
        assert_int_equal(sscanf(at + 1, "%*[/]%15[a-z0-9]", name) == 1 ||
                             sscanf(at + 1, "%15[a-z0-9]", name) == 1,
                         1);
        if (strcmp(name, "meta") == 0)
            continue;
        if (at[1] != '/') {
            assert_true(depth < 64);
            snprintf(open[depth++], sizeof open[0], "%s", name);
            continue;
        }
        assert_true(depth > 0);
        assert_string_equal(open[--depth], name);
    }
    assert_int_equal(depth, 0);
}

static void assert_page(const char *html)
{
    static const char *const foreign[] = {"http",    "<script", "<link",
                                          "@import", "url(",    "<img",
                                          "src=",    "nan",     "inf "};

    assert_true(strncmp(html, "<!DOCTYPE html>\n", 16) == 0);
    assert_says(html, "</html>");
    assert_says(html, "prefers-color-scheme:dark");
    assert_balanced(html);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_null(strstr(html, foreign[i]));
}

static void test_a_report_is_one_page_with_all_sections(void **_)
{
    static const char *const headings[] = {"Results",
                                           "Settings that differ",
                                           "Learning curves",
                                           "What the filter does",
                                           "Where the time goes",
                                           "Workers against each other",
                                           "Examples",
                                           "Confusions"};
    const char *html = NULL;

    (void)_;
    assert_code(BMUF("report", "a", "b", "--out", "two.html"), 0);
    html = page("two.html");
    assert_page(html);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        char heading[80];

        snprintf(heading, sizeof heading, "<h2>%s</h2>", headings[i]);
        assert_int_equal(count_of(html, heading), 1);
    }
    assert_says(html, "<th>train.rate</th>");
    assert_int_equal(count_of(html, "<figure>"), count_of(html, "</svg>"));
    assert_int_equal(count_of(html, "<figcaption>"),
                     count_of(html, "<figure>"));
    assert_true(count_of(html, "<figure>") >= 9);
}

/* A row "<td>a</td><td>done</td>.." with the numbers of info and eval. */
static void test_results_are_those_of_info_and_eval(void **_)
{
    json_t *info = result_of(BMUF("info", "a", "--json"));
    json_t *eval = result_of(BMUF("eval", "a", "test", "--json"));
    const json_t *range = json_object_get(eval, "ler_95");
    char cells[400];

    (void)_;
    assert_code(BMUF("report", "a"), 0); /* to a/report.html */
    snprintf(cells, sizeof cells,
             "<td>a</td><td>done</td><td>5 of 5</td><td>%.2f %%</td>"
             "<td>%.0f</td><td>%.2f %% (%.2f to %.2f)</td>",
             100 * number(info, "best_ler"), number(info, "best_epoch"),
             100 * number(eval, "ler"),
             100 * json_number_value(json_array_get(range, 0)),
             100 * json_number_value(json_array_get(range, 1)));
    assert_says(page("a/report.html"), cells);
    snprintf(cells, sizeof cells,
             "of %.0f labels taken for another, %.0f missing and %.0f too many",
             number(eval, "substitutions"), number(eval, "deletions"),
             number(eval, "insertions"));
    assert_says(page("a/report.html"), cells);
    json_decref(info);
    json_decref(eval);
}

static void test_the_worst_sequence_is_the_first_example(void **_)
{
    bm_error_count count[N];
    double worst = 0;
    char words[80];
    const char *html = NULL, *at = NULL;

    (void)_;
    count_errors("a", count);
    for (size_t k = 0; k < N; k++)
        worst = fmax(worst, count[k].errors / count[k].total);
    assert_code(BMUF("report", "a", "--out", "a.html"), 0);
    html = page("a.html");
    at = strstr(html, "<div class='example'><small>");
    assert_non_null(at);
    for (size_t k = 0; k < N; k++) {
        snprintf(words, sizeof words,
                 "<small>test-%zu: %.0f of %.0f labels wrong</small>", k,
                 count[k].errors, count[k].total);
        if (strncmp(at + 21, words, strlen(words)) == 0) {
            assert_true(count[k].errors / count[k].total == worst);
            return;
        }
    }
    fail();
}

/* A single sequence is both the worst and the best: its errors are marked
 * twice. */
static void test_colours_mark_the_errors(void **_)
{
    json_t *eval = NULL;
    const char *html = NULL;

    (void)_;
    write_text("single.jsonl", "{\"id\": \"u\", \"audio\": \"test-3.wav\", "
                               "\"text\": \"ab bcab\"}\n");
    assert_code(BMUF("pack", "--audio", "single.jsonl", "--out", "single",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    eval = result_of(BMUF("eval", "a", "single", "--json"));
    assert_true(number(eval, "wrong") == 1);
    assert_code(BMUF("report", "a", "--on", "single", "--out", "one.html"), 0);
    html = page("one.html");
    assert_int_equal(count_of(html, "class='pair sub'"),
                     2 * number(eval, "substitutions"));
    assert_int_equal(count_of(html, "class='pair del'"),
                     2 * number(eval, "deletions"));
    assert_int_equal(count_of(html, "class='pair ins'"),
                     2 * number(eval, "insertions"));
    json_decref(eval);
}

static void test_seeds_are_drawn_as_a_band(void **_)
{
    json_t *a = result_of(BMUF("info", "a", "--json"));
    json_t *c = result_of(BMUF("info", "c", "--json"));
    double one = number(a, "best_ler"), two = number(c, "best_ler");
    char words[200];

    (void)_;
    assert_code(
        BMUF("report", "a", "b", "c", "--no-examples", "--out", "bands.html"),
        0);
    assert_page(page("bands.html"));
    snprintf(words, sizeof words,
             "a and 1 more: best dev error %.2f %% in the mean, from %.2f to "
             "%.2f %%.",
             100 * (one + two) / 2, 100 * fmin(one, two), 100 * fmax(one, two));
    assert_says(page("bands.html"), words);
    assert_true(count_of(page("bands.html"), "class='f0 band'") > 0);
    assert_int_equal(count_of(page("bands.html"), "class='f1 band'"), 0);
    assert_int_equal(count_of(page("bands.html"), "<h2>Examples</h2>"), 0);
    assert_code(BMUF("report", "a", "c", "--no-examples", "--band", "data.dev",
                     "--out", "bands.html"),
                0);
    assert_null(strstr(page("bands.html"), "a and 1 more, dev"));
    assert_code(
        BMUF("report", "a", "d", "--no-examples", "--out", "bands.html"), 0);
    assert_int_equal(count_of(page("bands.html"), " band'"), 0);
    assert_code(BMUF("report", "a", "d", "--no-examples", "--band",
                     "train.rate", "--out", "bands.html"),
                0);
    assert_true(count_of(page("bands.html"), "class='f0 band'") > 0);
    json_decref(a);
    json_decref(c);
}

/* Seeds have a file of metrics each. */
static void test_metrics_are_no_difference(void **_)
{
    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "m", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant",
                     "--set", "train.rate=0.05", "--set", "job.seed=3", "--set",
                     "job.metrics=m.prom"),
                0);
    assert_code(BMUF("report", "a", "m", "--no-examples", "--out", "m.html"),
                0);
    assert_true(count_of(page("m.html"), "class='f0 band'") > 0);
    assert_says(page("m.html"), "job.metrics");
}

static void test_a_page_replaces_no_input(void **_)
{
    static const char *const outputs[] = {
        "a/journal.jsonl", "b/config.ini", "./a/model.safetensors",
        "test/vocab.txt", "train/../test/vocab.txt"};
    size_t n = 0, m = 0;
    char *before = slurp(in_folder("a/journal.jsonl"), &n), *after = NULL;

    (void)_;
    FOR_EACH (i, outputs)
        assert_fails(BMUF("report", "a", "--on", "test", "--no-examples",
                          "--out", outputs[i]),
                     73, outputs[i], "another file");
    assert_fails(BMUF("scale", "a", "--svg", "a/journal.jsonl"), 73,
                 "--svg a/journal.jsonl would replace");
    assert_fails(BMUF("train", "tiny.ini", "--out", "n", "--set",
                      "job.metrics=a/journal.jsonl"),
                 73, "job.metrics a/journal.jsonl would replace");
    assert_fails(BMUF("train", "tiny.ini", "--out", "n", "--set",
                      "job.metrics=n/journal.jsonl"),
                 73, "job.metrics n/journal.jsonl would replace");
    after = slurp(in_folder("a/journal.jsonl"), &m);
    assert_int_equal(m, n);
    assert_memory_equal(after, before, n);
    free(after);
    free(before);
}

/* A job that was killed in the middle of a line, before its first model. */
/* One that was stopped after three of five epochs is not in the mean. */
static void test_the_mean_is_of_runs_with_as_many_epochs(void **_)
{
    json_t *a = result_of(BMUF("info", "a", "--json"));
    json_t *c = result_of(BMUF("info", "c", "--json"));
    double one = number(a, "best_ler"), two = number(c, "best_ler");
    char words[200];

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "e", "--until", "3", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant",
                     "--set", "train.rate=0.05", "--set", "job.seed=3"),
                0);
    assert_code(
        BMUF("report", "a", "c", "e", "--no-examples", "--out", "bands.html"),
        0);
    snprintf(words, sizeof words,
             "a and 2 more: best dev error %.2f %% in the mean of the 2 that "
             "have come to 5 epochs, from %.2f to %.2f %%.",
             100 * (one + two) / 2, 100 * fmin(one, two), 100 * fmax(one, two));
    assert_says(page("bands.html"), words);
    json_decref(a);
    json_decref(c);
}

static void test_a_killed_run_has_a_report(void **_)
{
    (void)_;
    copy_run("a", "killed");
    cut_off(in_folder("killed/journal.jsonl"), 0.4);
    assert_int_equal(unlink(in_folder("killed/model.safetensors")), 0);
    assert_int_equal(unlink(in_folder("killed/model-best.safetensors")), 0);
    assert_code(BMUF("report", "killed"), 0);
    assert_page(page("killed/report.html"));
    assert_says(page("killed/report.html"), "<td>killed</td><td>killed</td>");
    assert_says(page("killed/report.html"),
                "killed was not scored for this report: killed has neither "
                "model-best.safetensors");
    assert_says(page("killed/report.html"), "label errors");
    remove_run("killed");
}

static void test_a_set_that_is_not_there_is_an_error(void **_)
{
    (void)_;
    assert_fails(BMUF("report", "a", "--on", "nowhere", "--out", "n.html"), 66,
                 "nowhere");
    assert_int_equal(access(in_folder("n.html"), F_OK), -1);
}

static void test_names_are_escaped(void **_)
{
    (void)_;
    copy_run("a", "x<y&'z");
    assert_code(
        BMUF("report", "a", "x<y&'z", "--no-examples", "--out", "e.html"), 0);
    assert_page(page("e.html"));
    assert_says(page("e.html"), "<td>x&lt;y&amp;&#39;z</td>");
    remove_run("x<y&'z");
}

/* JSON has UTF-8 alone; names of files have any bytes. */
static void test_names_that_are_not_utf8_are_escaped_in_json(void **_)
{
    json_t *result = NULL;

    (void)_;
    copy_run("a", "x\xff");
    result = result_of(BMUF("compare", "a", "x\xff", "--on", "test", "--json"));
    assert_string_equal(
        json_string_value(json_object_get(run_of(result, 1), "run")), "x\\xff");
    json_decref(result);
    result = result_of(BMUF("info", "x\xff", "--json"));
    assert_string_equal(json_string_value(json_object_get(result, "run")),
                        "x\\xff");
    json_decref(result);
    result = result_of(BMUF("eval", "x\xff", "test", "--json"));
    assert_non_null(
        strstr(json_string_value(json_object_get(result, "model")), "x\\xff/"));
    json_decref(result);
    remove_run("x\xff");
}

/* |G| = 2, |Delta| = 3 and cosine 0.5 give a gain of 0.75, eta = 0.75 and zeta =
 * 1 one of 4 in the end: heights on an axis from 0. */
static void test_the_effective_gain_is_that_of_the_norms(void **_)
{
    static const char block[] =
        "{\"event\":\"block\",\"epoch\":%d,\"block\":0,\"loss\":1,"
        "\"error\":0.5,\"rate\":0.1,\"frames\":100,\"seconds\":1,"
        "\"g_norm\":2,\"delta_norm\":3,\"cos_g_delta\":0.5}\n";
    char text[2000];
    const char *figure = NULL, *path = NULL;
    double left = 0, top = 0, bottom = 0, gain = 0, steady = 0;
    int n = 0;

    (void)_;
    n = snprintf(text, sizeof text,
                 "{\"event\":\"start\",\"workers\":4,\"ranks\":1,"
                 "\"strategy\":\"bmuf\",\"block_momentum\":0.75,"
                 "\"block_rate\":1,\"blocks_per_epoch\":1,"
                 "\"epochs\":2}\n");
    for (int k = 0; k < 2; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, block, k);
    write_text("journal.jsonl", text);
    assert_code(BMUF("report", ".", "--no-examples"), 0);
    figure = strstr(page("report.html"), "<title>effective gain</title>");
    assert_non_null(figure);
    path = strstr(figure, "class='axis' d='");
    assert_non_null(path);
    assert_int_equal(
        sscanf(path, "class='axis' d='M%lf %lfV%lf", &left, &top, &bottom), 3);
    path = strstr(figure, "class='l0 dash' d='");
    assert_non_null(path);
    assert_int_equal(sscanf(path, "class='l0 dash' d='M%*f %lf", &steady), 1);
    path = strstr(figure, "class='l0' d='");
    assert_non_null(path);
    assert_int_equal(sscanf(path, "class='l0' d='M%*f %lf", &gain), 1);
    assert_true(near((bottom - gain) / (bottom - steady), 0.75 / 4, 2e-3));
}

/* The points of a line in pixels, from the axes' origin on. */
static size_t points_of(const char *figure, const char *class, size_t room,
                        double *x, double *y)
{
    char words[40];
    const char *at = strstr(figure, "class='axis' d='M");
    double left = 0, bottom = 0;
    size_t n = 0;
    int used = 0;

    assert_non_null(at);
    assert_int_equal(sscanf(at, "class='axis' d='M%lf %*fV%lf", &left, &bottom),
                     2);
    snprintf(words, sizeof words, "class='%s' d='", class);
    at = strstr(figure, words);
    assert_non_null(at);
    at += strlen(words);
    for (; n < room && sscanf(at, "%*1[ML]%lf %lf%n", &x[n], &y[n], &used) == 2;
         at += used, n++) {
        x[n] -= left;
        y[n] = bottom - y[n];
    }
    return n;
}

/* Epochs of four blocks, two and two, of which the last is not done yet. eta is 0.5
 * in the first epoch and 0.75 later, so that the steady gain is 2 and 4. */
static void test_epochs_may_have_other_numbers_of_blocks(void **_)
{
    static const double epochs[] = {0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3};
    static const char block[] =
        "{\"event\":\"block\",\"epoch\":%d,\"block\":%d,"
        "\"blocks_per_epoch\":%d,\"loss\":1,\"error\":0.5,\"rate\":0.1,"
        "\"frames\":100,\"seconds\":1,\"block_momentum\":%g,"
        "\"block_rate\":1,\"g_norm\":1,\"delta_norm\":3,"
        "\"cos_g_delta\":1}\n";
    char text[4000];
    int n = 0;

    (void)_;
    n = snprintf(text, sizeof text,
                 "{\"event\":\"start\",\"workers\":4,\"ranks\":1,"
                 "\"strategy\":\"bmuf\",\"block_momentum\":0.5,"
                 "\"block_rate\":1,\"blocks_per_epoch\":4,"
                 "\"epochs\":3}\n");
    for (size_t i = 0; i < 8; i++) {
        int epoch = i < 4 ? 0 : i < 6 ? 1 : 2, all = epoch == 0 ? 4 : 2;
        int at = (int)(i < 4 ? i : i % 2);
        const char *figure = NULL;
        double x[9], y[9];
        json_t *run = NULL;

        n += snprintf(text + n, sizeof text - (size_t)n, block, epoch, at, all,
                      epoch == 0 ? 0.5 : 0.75);
        write_text("journal.jsonl", text);
        run = result_of(BMUF("info", ".", "--json"));
        assert_true(number(run, "epochs_done") == floor(epochs[i]));
        json_decref(run);
        if (i < 6)
            continue;
        assert_code(BMUF("report", ".", "--no-examples"), 0);
        figure = strstr(page("report.html"), "<title>effective gain</title>");
        assert_non_null(figure);
        assert_int_equal(points_of(figure, "l0 dash", 9, x, y), i + 1);
        for (size_t k = 0; k <= i; k++) {
            assert_true(near(x[k] / x[i], epochs[k] / epochs[i], 2e-3));
            assert_true(near(y[k] / y[i], k < 4 ? 0.5 : 1, 2e-3));
        }
    }
}

/* Means over two blocks of what the journal lists for each worker: 15 and 20
 * mini-batches; two workers were left out in all. Without a filter there are
 * no figures of it. */
static void test_workers_are_compared_by_the_lists_of_the_journal(void **_)
{
    const char *figure = NULL, *axis = NULL, *point = NULL;
    double top = 0, bottom = 0, first = 0, second = 0;

    (void)_;
    write_text(
        "journal.jsonl",
        "{\"event\":\"start\",\"workers\":2,\"ranks\":2,\"strategy\":\"ssgd\"}"
        "\n{\"event\":\"block\",\"epoch\":0,\"block\":0,\"loss\":1,"
        "\"seconds\":2,\"wait_s\":1,\"g_norm\":null,\"left_out\":2,"
        "\"batches_of_workers\":\"10 20\"}"
        "\n{\"event\":\"block\",\"epoch\":0,\"block\":1,\"loss\":1,"
        "\"seconds\":2,\"wait_s\":0,\"g_norm\":null,\"left_out\":0,"
        "\"batches_of_workers\":\"20 20\"}\n");
    assert_code(BMUF("report", ".", "--no-examples"), 0);
    assert_page(page("report.html"));
    assert_says(page("report.html"), "<td>2</td><td>2</td><td>2 times</td>"
                                     "<td>25.0 %</td>");
    assert_says(page("report.html"), "there is no filter to look at");
    assert_says(page("report.html"),
                "<title>waiting for the slowest rank</title>");
    figure = strstr(page("report.html"),
                    "<title>mini-batches of each worker</title>");
    assert_non_null(figure);
    axis = strstr(figure, "class='axis' d='");
    assert_non_null(axis);
    assert_int_equal(
        sscanf(axis, "class='axis' d='M%*f %lfV%lf", &top, &bottom), 2);
    point = strstr(axis, "<circle ");
    assert_non_null(point);
    assert_int_equal(sscanf(point, "<circle cx='%*f' cy='%lf'", &first), 1);
    point = strstr(point + 1, "<circle ");
    assert_non_null(point);
    assert_int_equal(sscanf(point, "<circle cx='%*f' cy='%lf'", &second), 1);
    assert_true(near((bottom - first) / (bottom - second), 0.75, 2e-3));
}

/* As a * of the shell may name it. The examples are those of the runs. */
static void test_what_is_no_run_is_left_out(void **_)
{
    char *page = NULL;
    outcome o;

    (void)_;
    o = BMUF("report", "tiny.ini", "a", "b", "--out", "mixed.html");
    assert_code(o, 0);
    assert_says(o.err, "tiny.ini is left out: it is not a run");
    page = slurp(in_folder("mixed.html"), &(size_t){0});
    assert_says(page, "Report of 2 runs");
    assert_null(strstr(page, "was not scored"));
    free(page);
}

/* A run that counted twice would make the band of seeds narrower. */
static void test_a_run_counts_once(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("report", "a", "b", "./b/", "--no-examples", "--out",
             "twice.html");
    assert_code(o, 0);
    assert_says(o.err, "./b/ is given more than once, and shown once");
    assert_says(page("twice.html"), "Report of 2 runs");
}

static void copy_into(const char *from, const char *to, const char *name)
{
    char source[4096], target[4096];

    snprintf(source, sizeof source, "%s/%s", from, name);
    snprintf(target, sizeof target, "%s/%s", to, name);
    run_tool((char *[]){"cp", (char *)in_folder(source),
                        (char *)in_folder(target), NULL});
}

/* As DIR/trials/t0* names them: 24 runs with a configuration and a log each; 66
 * runs are too many. compare leaves out texts. */
static void test_files_beside_runs_are_left_out(void **_)
{
    static char runs[66][24], files[48][24];
    const char *words[80] = {"report", "--no-examples", "--out", "all.html"};
    outcome o;

    (void)_;
    for (int i = 0; i < 66; i++) {
        snprintf(runs[i], sizeof runs[i], "t%03d", i);
        words[4 + i] = runs[i];
        run_tool((char *[]){"mkdir", (char *)in_folder(runs[i]), NULL});
        copy_into("a", runs[i], "journal.jsonl");
        copy_into("a", runs[i], "config.ini");
    }
    assert_fails(command_run(&(command){.words = words}), 64,
                 "report takes at most 64 runs; give fewer");
    for (int i = 0; i < 48; i++) {
        snprintf(files[i], sizeof files[i], "t%03d.%s", i / 2,
                 i % 2 == 0 ? "ini" : "log");
        write_text(files[i], "bmuf: a text\n");
        words[4 + 24 + i] = files[i];
    }
    o = command_run(&(command){.words = words});
    assert_code(o, 0);
    assert_says(o.err, "t000.ini and 47 more are left out: they are not runs");
    assert_says(page("all.html"), "Report of 24 runs");

    o = BMUF("compare", "t000.log", "a", "tiny.ini", "b");
    assert_code(o, 0);
    assert_says(o.err, "t000.log and 1 more are left out: they are not runs");
    assert_fails(BMUF("compare", "a", "tiny.ini"), 64,
                 "tiny.ini is a text, not a run, and fewer than two runs");
}

/* It has a report already. */
static void test_a_search_is_no_run(void **_)
{
    (void)_;
    run_tool((char *[]){"mkdir", "-p", (char *)in_folder("s/record"), NULL});
    write_text("s/record/journal.jsonl", "{}\n");
    assert_fails(BMUF("report", "s"), 64, "s is a search of bmuf tune",
                 "its own report is s/report.html");
    assert_fails(BMUF("train", "tiny.ini", "--from", "s", "--out", "x"), 64,
                 "s is a search of bmuf tune");
}

static void test_report_says_what_is_wrong(void **_)
{
    (void)_;
    assert_fails(BMUF("report", "a", "b"), 64, "needs --out FILE.html");
    assert_fails(BMUF("report", "a", "--band", "job.sed", "--out", "x.html"),
                 64, "--band job.sed is not a setting");
    assert_fails(BMUF("report", "tiny.ini", "--out", "x.html"), 66,
                 "tiny.ini is not a run: it has no journal.jsonl");
    assert_fails(BMUF("report", "tiny.ini", "train", "--out", "x.html"), 66,
                 "tiny.ini is not a run: it has no journal.jsonl");
    assert_fails(BMUF("report", "a", "--out", "no/x.html"), 73, "no/x.html");
    assert_int_equal(access(in_folder("x.html"), F_OK), -1);
}

/* ---- main --------------------------------------------------------------- */

static void train_run(const char *run, const char *epochs, const char *rate,
                      const char *seed)
{
    assert_code(BMUF("train", "tiny.ini", "--out", run, "--set", epochs,
                     "--set", "schedule.kind=constant", "--set", rate, "--set",
                     seed),
                0);
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    train_run("a", "train.epochs=5", "train.rate=0.05", "job.seed=1");
    train_run("b", "train.epochs=4", "train.rate=0.04", "job.seed=1");
    train_run("c", "train.epochs=5", "train.rate=0.05", "job.seed=2");
    train_run("d", "train.epochs=5", "train.rate=0.06", "job.seed=1");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_compare_has_the_numbers_of_eval_and_of_paired_draws),
        cmocka_unit_test(test_compare_draws_speakers),
        cmocka_unit_test(test_compare_lists_settings_that_differ),
        cmocka_unit_test(test_ranks_do_not_change_a_comparison),
        cmocka_unit_test(test_compare_says_what_is_missing),
        cmocka_unit_test(test_a_report_is_one_page_with_all_sections),
        cmocka_unit_test(test_results_are_those_of_info_and_eval),
        cmocka_unit_test(test_the_worst_sequence_is_the_first_example),
        cmocka_unit_test(test_colours_mark_the_errors),
        cmocka_unit_test(test_seeds_are_drawn_as_a_band),
        cmocka_unit_test(test_the_mean_is_of_runs_with_as_many_epochs),
        cmocka_unit_test(test_metrics_are_no_difference),
        cmocka_unit_test(test_a_page_replaces_no_input),
        cmocka_unit_test(test_a_killed_run_has_a_report),
        cmocka_unit_test(test_a_set_that_is_not_there_is_an_error),
        cmocka_unit_test(test_names_are_escaped),
        cmocka_unit_test(test_names_that_are_not_utf8_are_escaped_in_json),
        cmocka_unit_test(test_the_effective_gain_is_that_of_the_norms),
        cmocka_unit_test(test_epochs_may_have_other_numbers_of_blocks),
        cmocka_unit_test(test_workers_are_compared_by_the_lists_of_the_journal),
        cmocka_unit_test(test_what_is_no_run_is_left_out),
        cmocka_unit_test(test_a_run_counts_once),
        cmocka_unit_test(test_files_beside_runs_are_left_out),
        cmocka_unit_test(test_a_search_is_no_run),
        cmocka_unit_test(test_report_says_what_is_wrong),
    };

    return cmocka_run_group_tests_name("report", tests, prepare, folder_remove);
}
