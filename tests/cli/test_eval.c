/*
 * bmuf eval: compares its numbers with its transcripts, its transcripts with
 * its logits, and all of them between numbers of ranks.
 */
#include "core/words.h"
#include "io/model/ark.h"
#include "io/model/safetensors.h"
#include "models/bootstrap.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 21, LONGEST = 80 }; /* of test/ */

/* Classes in their order, as bmuf pack sorts them. */
static const char symbols[] = "\b abc";

static json_t *result_of(outcome o)
{
    assert_code(o, 0);
    return parse_json(o.out);
}

static json_t *evaluate(const char *data, const char *hyp)
{
    outcome o = BMUF("eval", "half.safetensors", data, "--json", "--hyp", hyp);

    assert_string_equal(o.err, "");
    return result_of(o);
}

/* ---- transcripts -------------------------------------------------------- */

static char *read_file(const char *name)
{
    static char text[4][N * LONGEST];
    static int turn;
    char *to = text[turn++ % 4];
    FILE *file = fopen(in_folder(name), "r");
    size_t n = 0;

    assert_non_null(file);
    n = fread(to, 1, sizeof text[0] - 1, file);
    fclose(file);
    to[n] = '\0';
    return to;
}

/* The words of line i of a trn file, which must end with " (test-i)". */
static void read_trn(const char *name, char words[N][LONGEST])
{
    char *rest = NULL, *line = strtok_r(read_file(name), "\n", &rest);

    for (size_t i = 0; i < N; i++, line = strtok_r(NULL, "\n", &rest)) {
        char id[32];
        size_t n = 0;

        assert_non_null(line);
        n = strlen(line);
        snprintf(id, sizeof id, " (test-%zu)", i);
        assert_true(n >= strlen(id) && n < LONGEST);
        assert_string_equal(line + n - strlen(id), id);
        memcpy(words[i], line, n - strlen(id));
        words[i][n - strlen(id)] = '\0';
    }
    assert_null(line);
}

/* ---- errors ------------------------------------------------------------- */

typedef struct errors {
    int s, d, i;
} errors;

static int sum(errors e)
{
    return e.s + e.d + e.i;
}

/* By definition, from the ends of both. Of alignments with equal costs a match
 * or substitution is preferred, then a deletion. */
static errors align(const int *ref, size_t n, const int *hyp, size_t m)
{
    errors table[LONGEST][LONGEST] = {{{0}}};

    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            errors best = {0}, other = {0};

            if (i == 0 && j == 0)
                continue;
            if (i > 0 && j > 0) {
                best = table[i - 1][j - 1];
                best.s += ref[i - 1] != hyp[j - 1];
            }
            if (i > 0) {
                other = table[i - 1][j];
                other.d++;
                if (j == 0 || sum(other) < sum(best))
                    best = other;
            }
            if (j > 0) {
                other = table[i][j - 1];
                other.i++;
                if (i == 0 || sum(other) < sum(best))
                    best = other;
            }
            table[i][j] = best;
        }
    return table[n][m];
}

static size_t as_letters(const char *text, int *out)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        out[n++] = (unsigned char)*text;
    return n;
}

/* Words are numbered in the order of first occurrence. */
static int number_of(const char *word, size_t length)
{
    static char known[200][LONGEST];
    static int n;

    for (int i = 0; i < n; i++)
        if (strlen(known[i]) == length && memcmp(known[i], word, length) == 0)
            return i;
    assert_true(n < 200 && length < LONGEST);
    memcpy(known[n], word, length);
    return n++;
}

static size_t as_words(const char *text, int *out)
{
    size_t n = 0;

    while (*(text += strspn(text, " ")) != '\0') {
        size_t length = strcspn(text, " ");

        out[n++] = number_of(text, length);
        text += length;
    }
    return n;
}

static errors compare(const char *ref, const char *hyp,
                      size_t (*as)(const char *, int *), size_t *n)
{
    int a[LONGEST], b[LONGEST];

    *n = as(ref, a);
    return align(a, *n, b, as(hyp, b));
}

static void test_errors_are_those_of_the_transcripts(void **_)
{
    char words[N][LONGEST];
    json_t *result = evaluate("test", "half.trn");
    errors all = {0}, of_words = {0};
    double labels = 0, n_words = 0, wrong = 0, frames = 0;

    (void)_;
    read_trn("half.trn", words);
    for (size_t i = 0; i < N; i++) {
        size_t n = 0;
        errors e = compare(speech_text(i), words[i], as_letters, &n);

        labels += (double)n;
        wrong += sum(e) > 0;
        all = (errors){all.s + e.s, all.d + e.d, all.i + e.i};
        e = compare(speech_text(i), words[i], as_words, &n);
        of_words =
            (errors){of_words.s + e.s, of_words.d + e.d, of_words.i + e.i};
        n_words += (double)n;
        frames += (double)speech_frames(i);
    }
    assert_true(sum(all) > 0 && sum(all) < labels); /* else nothing is tested */
    assert_true(number(result, "labels") == labels);
    assert_true(number(result, "substitutions") == all.s);
    assert_true(number(result, "deletions") == all.d);
    assert_true(number(result, "insertions") == all.i);
    assert_true(near(number(result, "ler"), sum(all) / labels, 1e-8));
    assert_true(number(result, "words") == n_words);
    assert_true(number(result, "word_errors") == sum(of_words));
    assert_true(number(result, "word_substitutions") == of_words.s);
    assert_true(number(result, "word_deletions") == of_words.d);
    assert_true(number(result, "word_insertions") == of_words.i);
    assert_true(near(number(result, "wer"), sum(of_words) / n_words, 1e-8));
    assert_true(number(result, "sequences") == N);
    assert_true(number(result, "wrong") == wrong);
    assert_true(number(result, "frames") == frames);
    assert_true(number(result, "skipped") == 0);
    assert_true(number(result, "seconds") > 0);
    json_decref(result);
}

/* An end of an interval. */
static double bound(const json_t *result, const char *key, size_t end)
{
    const json_t *of = json_array_get(json_object_get(result, key), end);

    assert_true(json_is_number(of));
    return json_number_value(of);
}

/* The errors of each transcript, drawn again. */
static void test_intervals_are_those_of_the_transcripts(void **_)
{
    char words[N][LONGEST];
    json_t *result = evaluate("test", "drawn.trn");
    bm_error_count labels[N], of_words[N];
    bm_interval i = {0};

    (void)_;
    read_trn("drawn.trn", words);
    for (size_t k = 0; k < N; k++) {
        size_t n = 0;

        labels[k].errors =
            sum(compare(speech_text(k), words[k], as_letters, &n));
        labels[k].total = (double)n;
        of_words[k].errors =
            sum(compare(speech_text(k), words[k], as_words, &n));
        of_words[k].total = (double)n;
    }
    assert_ok(bm_bootstrap(labels, N, &i));
    assert_true(i.low < i.rate && i.rate < i.high);
    assert_true(near(bound(result, "ler_95", 0), i.low, 1e-8));
    assert_true(near(bound(result, "ler_95", 1), i.high, 1e-8));
    assert_ok(bm_bootstrap(of_words, N, &i));
    assert_true(near(bound(result, "wer_95", 0), i.low, 1e-8));
    assert_true(near(bound(result, "wer_95", 1), i.high, 1e-8));
    json_decref(result);
}

static bm_counted counted(const json_t *result, const char *key,
                          const char *noun)
{
    return bm_count_noun((long long)number(result, key), noun);
}

static void test_the_table_has_the_same_numbers(void **_)
{
    json_t *result = evaluate("test", "table.trn");
    outcome o = BMUF("eval", "half.safetensors", "test");
    char line[500];

    (void)_;
    assert_code(o, 0);
    snprintf(line, sizeof line,
             "label errors    %.2f %%  (95 %%: %.2f to %.2f; %.0f "
             "substitutions, %.0f deletions, %.0f insertions in %.0f)\n",
             100 * number(result, "ler"), 100 * bound(result, "ler_95", 0),
             100 * bound(result, "ler_95", 1), number(result, "substitutions"),
             number(result, "deletions"), number(result, "insertions"),
             number(result, "labels"));
    assert_says(o.out, line);
    snprintf(line, sizeof line,
             "word errors     %.2f %%  (95 %%: %.2f to %.2f; "
             "%s, %s, %s in %.0f)\n",
             100 * number(result, "wer"), 100 * bound(result, "wer_95", 0),
             100 * bound(result, "wer_95", 1),
             counted(result, "word_substitutions", "substitution").text,
             counted(result, "word_deletions", "deletion").text,
             counted(result, "word_insertions", "insertion").text,
             number(result, "words"));
    assert_says(o.out, line);
    snprintf(line, sizeof line, "loss            %.6g nats per sequence\n",
             number(result, "loss"));
    assert_says(o.out, line);
    json_decref(result);
}

/* ---- ranks, batches ----------------------------------------------------- */

/* The JSON output without the time and the name of the model. */
static void assert_same_result(const char *a, const char *b)
{
    json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);

    assert_non_null(x);
    assert_non_null(y);
    json_object_del(x, "seconds");
    json_object_del(y, "seconds");
    json_object_del(x, "model");
    json_object_del(y, "model");
    assert_int_equal(json_object_size(x), 20);
    assert_true(json_equal(x, y));
    json_decref(x);
    json_decref(y);
}

static void test_ranks_do_not_change_a_number(void **_)
{
    outcome one =
        BMUF("eval", "half.safetensors", "test", "--json", "--hyp", "one.trn");
    outcome two = BMUF("eval", "half.safetensors", "test", "--json", "--hyp",
                       "two.trn", "-n", "2");
    outcome three = BMUF_ON(3, "eval", "half.safetensors", "test", "--json",
                            "--hyp", "three.trn");

    (void)_;
    assert_code(one, 0);
    assert_code(two, 0);
    assert_code(three, 0);
    assert_same_result(one.out, two.out);
    assert_same_result(one.out, three.out);
    assert_string_equal(read_file("one.trn"), read_file("two.trn"));
    assert_string_equal(read_file("one.trn"), read_file("three.trn"));
}

/* With --hyp - stdout has the transcripts alone, and stderr the scores. */
static void test_transcripts_go_to_stdout(void **_)
{
    outcome o = BMUF("eval", "half.safetensors", "test", "--hyp", "-");
    char *file = NULL;
    size_t size = 0;

    (void)_;
    assert_code(o, 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "f.trn"), 0);
    file = slurp(in_folder("f.trn"), &size);
    assert_string_equal(o.out, file);
    assert_says(o.err, "sequences       21, ");
    assert_says(o.err, "label errors ");
    free(file);
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--hyp", "-", "--json"), 64,
        "--hyp - and --json both print to stdout");
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "x.txt"),
                 64, "--dump x.txt", ".npz");
    assert_int_equal(access(in_folder("x.txt"), F_OK), -1);
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "no/x.npz"),
                 73, "no/x.npz");
}

static void test_batches_do_not_change_transcripts(void **_)
{
    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "a.trn"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "b.trn",
                     "--set", "batch.sequences=1"),
                0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "c.trn",
                     "--set", "batch.frames=200"),
                0);
    assert_string_equal(read_file("a.trn"), read_file("b.trn"));
    assert_string_equal(read_file("a.trn"), read_file("c.trn"));
}

/* ---- logits ------------------------------------------------------------- */

/* The best class of each frame, without repeats and blanks. */
static void decode(const dump_array *a, char *out)
{
    size_t before = 0;

    for (size_t t = 0; t < a->rows; t++) {
        const float *row = a->x + t * a->columns;
        size_t best = 0;

        for (size_t c = 1; c < a->columns; c++)
            best = row[c] > row[best] ? c : best;
        if (best != 0 && best != before)
            *out++ = symbols[best];
        before = best;
    }
    *out = '\0';
}

static void test_transcripts_are_the_best_paths_of_the_logits(void **_)
{
    char words[N][LONGEST], best[LONGEST], id[32];
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "d.npz",
                     "--hyp", "d.trn"),
                0);
    d = dump_read("d.npz");
    read_trn("d.trn", words);
    assert_int_equal(d.n, N);
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = NULL;
        snprintf(id, sizeof id, "test-%zu", i);
        a = dump_find(&d, id);
        assert_int_equal(a->rows, (speech_frames(i) + 1) / 2); /* stack:2 */
        assert_int_equal(a->columns, 5);
        decode(a, best);
        assert_string_equal(best, words[i]);
    }
    dump_free(&d);
}

static size_t classes_of(const char *text, int32_t *labels)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        labels[n++] = (int32_t)(strchr(symbols, *text) - symbols);
    return n;
}

static double ctc_of(const dump_array *a, const char *text)
{
    int32_t labels[LONGEST];
    size_t n = classes_of(text, labels);
    double *dy = zeros(a->rows * a->columns, sizeof *dy);
    double loss = ctc_reference(a->rows, a->columns, a->x, labels, n, dy);

    free(dy);
    return loss;
}

static void test_the_loss_is_the_ctc_of_the_logits(void **_)
{
    json_t *result = evaluate("test", "l.trn");
    double all = 0;
    dump d = {0};
    char id[32];

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "l.npz"), 0);
    d = dump_read("l.npz");
    for (size_t i = 0; i < N; i++) {
        snprintf(id, sizeof id, "test-%zu", i);
        all += ctc_of(dump_find(&d, id), speech_text(i));
    }
    assert_true(near(number(result, "loss"), all / N, 1e-6));
    dump_free(&d);
    json_decref(result);
}

/* Halves change little, bytes more; both models are read like any other. */
static void test_models_with_fewer_bits_score_nearly_the_same(void **_)
{
    static const struct {
        const char *type;
        double logits, loss; /* differences at most */
    } cases[] = {{"fp16", 0.02, 0.01}, {"int8", 0.2, 0.1}};
    json_t *whole = evaluate("test", "w.trn");
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "w.npz"), 0);
    d = dump_read("w.npz");
    FOR_EACH (i, cases) {
        json_t *narrow = NULL;
        double most = 0;
        dump e = {0};

        assert_code(BMUF("export", "half.safetensors", "--weights",
                         cases[i].type, "--out", "narrow.safetensors"),
                    0);
        narrow = result_of(BMUF("eval", "narrow.safetensors", "test", "--json",
                                "--dump", "n.npz"));
        e = dump_read("n.npz");
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < d.arrays[k].rows * d.arrays[k].columns; j++)
                most = fmax(most,
                            fabs((double)d.arrays[k].x[j] - e.arrays[k].x[j]));
        assert_true(most > 0 && most < cases[i].logits);
        assert_true(fabs(number(whole, "loss") - number(narrow, "loss")) <
                    cases[i].loss * number(whole, "loss"));
        dump_free(&e);
        json_decref(narrow);
    }
    dump_free(&d);
    json_decref(whole);
}

/* ---- Kaldi's archives --------------------------------------------------- */

static int32_t number_at(const char *bytes)
{
    int32_t x = 0;

    memcpy(&x, bytes, sizeof x);
    return x;
}

/* Kaldi's binary form of a matrix of floats. */
static void assert_matrix(const char *bytes, const dump_array *a)
{
    assert_memory_equal(bytes, "\0BFM \4", 6);
    assert_int_equal(number_at(bytes + 6), a->rows);
    assert_int_equal(bytes[10], 4);
    assert_int_equal(number_at(bytes + 11), a->columns);
    assert_memory_equal(bytes + 15, a->x, a->rows * a->columns * sizeof *a->x);
}

static void test_an_archive_has_what_its_list_says(void **_)
{
    char *list = NULL, *archive = NULL, *rest = NULL, before[32] = "";
    size_t size = 0, n = 0;
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump",
                     "ark,scp:k.ark,k.scp"),
                0);
    d = dump_read("k.npz");
    list = slurp(in_folder("k.scp"), &size);
    archive = slurp(in_folder("k.ark"), &size);
    for (char *line = strtok_r(list, "\n", &rest); line != NULL; n++) {
        char id[32];
        size_t at = 0;

        assert_int_equal(sscanf(line, "%31s k.ark:%zu", id, &at), 2);
        assert_true(strcmp(before, id) < 0); /* sorted */
        snprintf(before, sizeof before, "%s", id);
        assert_true(at > strlen(id) && at < size);
        assert_memory_equal(archive + at - strlen(id) - 1, id, strlen(id));
        assert_matrix(archive + at, dump_find(&d, id));
        line = strtok_r(NULL, "\n", &rest);
    }
    assert_int_equal(n, N);
    free(list);
    free(archive);
    dump_free(&d);
}

/* As text, with nine digits: "id [", rows, "]". */
static void test_an_archive_as_text_has_the_same_numbers(void **_)
{
    char *text = NULL, *at = NULL;
    size_t size = 0;
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "ark,t:t"),
                0);
    d = dump_read("k.npz");
    at = text = slurp(in_folder("t"), &size);
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = NULL;
        char id[32];
        int n = 0;

        assert_int_equal(sscanf(at, "%31s [%n", id, &n), 1);
        a = dump_find(&d, id);
        at += n;
        for (size_t k = 0; k < a->rows * a->columns; k++)
            assert_true(strtof(at, &at) == a->x[k]);
        assert_memory_equal(at, " ]\n", 3);
        at += 3;
    }
    assert_int_equal(at - text, size);
    free(text);
    dump_free(&d);
}

/* Of both kinds of probabilities. */
static void test_posteriors_are_the_softmax_of_the_logits(void **_)
{
    dump logits = {0}, p = {0}, log_p = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "p.npz",
                     "--values", "posteriors"),
                0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "q.npz",
                     "--values", "log-posteriors"),
                0);
    logits = dump_read("k.npz");
    p = dump_read("p.npz");
    log_p = dump_read("q.npz");
    for (size_t i = 0; i < N; i++) {
        const dump_array *x = &logits.arrays[i];

        for (size_t t = 0; t < x->rows; t++) {
            double sum = 0;

            for (size_t c = 0; c < x->columns; c++)
                sum += exp((double)x->x[t * x->columns + c]);
            for (size_t c = 0; c < x->columns; c++) {
                size_t k = t * x->columns + c;
                double right = exp((double)x->x[k]) / sum;

                assert_true(near(p.arrays[i].x[k], right, 1e-7));
                assert_true(near(log_p.arrays[i].x[k], log(right), 1e-6));
            }
        }
    }
    dump_free(&logits);
    dump_free(&p);
    dump_free(&log_p);
}

static void test_places_of_archives_are_checked(void **_)
{
    static const char *const odd[] = {"ark:",      "ark,scp:x.ark", "scp:x",
                                      "ark,x:y",   "ark,scp:x,x",   "ark:-",
                                      "ark,scp:,x"};
    const float x[2] = {1, 2};
    bm_ark *a = NULL;

    (void)_;
    FOR_EACH (i, odd) {
        assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", odd[i]),
                     64, odd[i], "ark:FILE");
    }
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "ark:no/x"),
                 73, "no/x");
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--values", "posteriors"), 64,
        "--dump");
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "x.npz",
                      "--values", "odds"),
                 64, "log-posteriors");
    assert_int_equal(access(in_folder("x.npz"), F_OK), -1);
    assert_ok(bm_ark_create(&a, "ark:blank.ark"));
    assert_int_equal(bm_ark_add(a, "a b", x, 1, 2, 2), BM_ERR_FORMAT);
    bm_ark_close(a);
    assert_int_equal(access("blank.ark", F_OK), -1);
}

/* A data set of one sequence: the mean is its loss. */
static void test_one_sequence_alone_has_its_own_loss(void **_)
{
    json_t *result = NULL;
    dump d = {0};

    (void)_;
    write_text("single.jsonl", "{\"id\": \"u\", \"audio\": \"test-3.wav\", "
                               "\"text\": \"ca b\"}\n");
    assert_code(BMUF("pack", "--audio", "single.jsonl", "--out", "single",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    result = evaluate("single", "s.trn");
    assert_code(BMUF("eval", "half.safetensors", "single", "--dump", "s.npz"),
                0);
    d = dump_read("s.npz");
    assert_int_equal(d.n, 1);
    assert_true(
        near(number(result, "loss"), ctc_of(dump_find(&d, "u"), "ca b"), 1e-6));
    dump_free(&d);
    json_decref(result);
}

/* Seven labels, one repeated, in 9 frames that stack:2 makes of 18 - and eight
 * with two repeats, which need ten. */
static void test_infeasible_sequences_are_counted(void **_)
{
    json_t *result = NULL;

    (void)_;
    write_speech("short.wav", "ab");
    write_text("short.jsonl",
               "{\"id\": \"u\", \"audio\": \"short.wav\", \"text\": "
               "\"aabcbac\"}\n"
               "{\"id\": \"v\", \"audio\": \"short.wav\", \"text\": "
               "\"aabbcbac\"}\n");
    assert_code(BMUF("pack", "--audio", "short.jsonl", "--out", "short",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    assert_says(BMUF("eval", "half.safetensors", "short").err,
                "v: 8 labels with 2 repeats do not fit into 9 frames, "
                "skipped");
    assert_says(BMUF("eval", "half.safetensors", "short").out,
                "skipped         1 sequence infeasible or not finite");
    result = result_of(BMUF("eval", "half.safetensors", "short", "--json"));
    assert_true(number(result, "skipped") == 1);
    assert_true(number(result, "sequences") == 2);
    assert_true(number(result, "labels") == 15);
    json_decref(result);
}

/* ---- sequences without a reference -------------------------------------- */

static void pack(const char *manifest, const char *set, const char *vocab,
                 const char *setting)
{
    assert_code(BMUF("pack", "--audio", manifest, "--out", set, "--vocab",
                     vocab, "--set", "features.mels=8", "--set", setting),
                0);
}

/* A manifest of recordings [first, end) of test/, with texts for those below
 * `n`. */
static void write_manifest(const char *name, size_t first, size_t n, size_t end)
{
    char text[N * 100] = "";

    for (size_t i = first; i < end; i++) {
        size_t at = strlen(text);

        if (i < n)
            snprintf(text + at, sizeof text - at,
                     "{\"id\": \"test-%zu\", \"audio\": \"test-%zu.wav\", "
                     "\"text\": \"%s\"}\n",
                     i, i, speech_text(i));
        else
            snprintf(text + at, sizeof text - at,
                     "{\"id\": \"test-%zu\", \"audio\": \"test-%zu.wav\"}\n", i,
                     i);
    }
    write_text(name, text);
}

/* Packs sequences without texts, and puts their shard beside those of a set. */
static void add_without_texts(const char *manifest, const char *set)
{
    char to[64], *from = strdup(in_folder("rest/rest-00000.bmuf.h5"));

    assert_code(BMUF("pack", "--audio", manifest, "--out", "rest", "--name",
                     "rest", "--vocab", "train", "--set", "features.mels=8",
                     "--set", "features.dither=0"),
                0);
    snprintf(to, sizeof to, "%s/rest-00000.bmuf.h5", set);
    assert_int_equal(rename(from, in_folder(to)), 0);
    free(from);
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

static void test_without_references_there_are_no_rates(void **_)
{
    json_t *result = NULL;
    outcome o;

    (void)_;
    write_manifest("mute.jsonl", 0, 0, N);
    pack("mute.jsonl", "mute", "train", "features.dither=0");
    o = BMUF("eval", "half.safetensors", "mute", "--hyp", "mute.trn");
    assert_code(o, 0);
    assert_says(o.out, "sequences       21, none with a reference: no loss, no "
                       "error rates\n");
    assert_int_equal(count_of(o.out, "%"), 0);
    assert_int_equal(count_of(o.out, "nats"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "heard.trn"),
                0);
    assert_string_equal(read_file("mute.trn"), read_file("heard.trn"));
    result = evaluate("mute", "mute.trn");
    assert_true(is_null(result, "loss") && is_null(result, "ler") &&
                is_null(result, "wer"));
    assert_true(number(result, "sequences") == N);
    assert_true(number(result, "references") == 0);
    assert_true(number(result, "insertions") == 0);
    assert_true(number(result, "wrong") == 0);
    json_decref(result);
    assert_fails(
        BMUF("train", "tiny.ini", "--out", "none", "--set", "data.dev=mute"),
        65, "mute has no labels", "pack it with texts");
    assert_int_equal(BMUF("explain", "tiny.ini", "--set", "data.dev=mute").code,
                     65);
}

/* Some sequences without references: the others count as they do alone. */
static void test_sequences_without_references_do_not_count(void **_)
{
    static const char *const keys[] = {
        "labels", "substitutions", "deletions", "insertions",
        "words",  "word_errors",   "wrong",     "references"};
    json_t *mixed = NULL, *alone = NULL;
    outcome o;

    (void)_;
    write_manifest("mixed.jsonl", 0, 8, 8);
    pack("mixed.jsonl", "mixed", "train", "features.dither=0");
    write_manifest("rest.jsonl", 8, 8, N);
    add_without_texts("rest.jsonl", "mixed");
    write_manifest("alone.jsonl", 0, 8, 8);
    pack("alone.jsonl", "alone", "train", "features.dither=0");
    mixed = evaluate("mixed", "m.trn");
    alone = evaluate("alone", "m.trn");
    FOR_EACH (k, keys)
        assert_true(number(mixed, keys[k]) == number(alone, keys[k]));
    assert_true(number(mixed, "references") == 8);
    assert_true(number(mixed, "sequences") == N);
    assert_true(near(number(mixed, "loss"), number(alone, "loss"), 1e-5));
    o = BMUF("eval", "half.safetensors", "mixed");
    assert_says(o.out, "sequences       21, 13 without a reference; ");
    json_decref(mixed);
    json_decref(alone);
}

/* Nothing spoken is a reference; nothing known is none. */
static void test_an_empty_text_is_a_reference(void **_)
{
    json_t *result = NULL;

    (void)_;
    write_text("silent.jsonl",
               "{\"id\": \"u\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n");
    pack("silent.jsonl", "silent", "train", "features.dither=0");
    write_text("rest.jsonl", "{\"id\": \"v\", \"audio\": \"test-0.wav\"}\n");
    add_without_texts("rest.jsonl", "silent");
    result = evaluate("silent", "s.trn");
    assert_true(number(result, "sequences") == 2);
    assert_true(number(result, "references") == 1);
    assert_true(number(result, "wrong") == 1);
    assert_true(number(result, "insertions") > 0);
    assert_true(is_null(result, "ler"));
    assert_true(number(result, "loss") > 0);
    json_decref(result);
}

/* ---- features as the model's -------------------------------------------- */

static void test_other_feature_settings_are_an_error(void **_)
{
    (void)_;
    pack("test.jsonl", "bent", "train", "features.preemphasis=0.5");
    assert_fails(BMUF("eval", "half.safetensors", "bent"), 65,
                 "bent has other features than the model half.safetensors:\n"
                 "  features.preemphasis is 0.5, should be 0.97: --set "
                 "features.preemphasis=0.97\n",
                 "--vocab TRAINING-DATA");
    assert_code(BMUF("eval", "half.safetensors", "bent", "--force"), 0);
    assert_fails(
        BMUF("train", "tiny.ini", "--out", "none", "--set", "data.dev=bent"),
        65, "bent has other features than data.train (train):",
        "features.preemphasis is 0.5");
    /* What belongs to the recordings may differ. */
    pack("test.jsonl", "first", "train", "features.channel=1");
    assert_code(BMUF("eval", "half.safetensors", "first"), 0);
}

static void assert_same_files(const char *a, const char *b)
{
    size_t size[2];
    char *x = slurp(in_folder(a), &size[0]), *y = slurp(in_folder(b), &size[1]);

    assert_int_equal(size[0], size[1]);
    assert_memory_equal(x, y, size[0]);
    free(x);
    free(y);
}

/* The means of the training set are in its shards and in the model: a set that
 * was packed like either, and one that was not normalised, give equal logits. */
static void test_the_normalisation_travels_with_the_model(void **_)
{
    static const char *const same[] = {"like", "after", "raw"};
    dump own = {0}, like = {0};
    char dumped[32];

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "whole",
                     "--set", "features.mels=8", "--set", "features.deltas=1",
                     "--set", "features.stack=2", "--set",
                     "features.normalise=global", "--set",
                     "shard.unit_frames=100"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "global", "--set",
                     "data.train=whole", "--set", "data.dev=", "--set",
                     "train.epochs=1", "--set", "schedule.kind=constant"),
                0);
    write_manifest("few.jsonl", 0, 8, 8);
#define PACK(manifest, set, vocab, normalise)                                  \
    assert_code(BMUF("pack", "--audio", manifest, "--out", set, "--vocab",     \
                     vocab, "--set", "features.mels=8", "--set",               \
                     "features.deltas=1", "--set", "features.stack=2",         \
                     "--set", normalise),                                      \
                0)
    PACK("test.jsonl", "like", "whole", "features.normalise=global");
    PACK("test.jsonl", "after", "global/model.safetensors",
         "features.normalise=global");
    PACK("test.jsonl", "raw", "whole", "features.normalise=none");
    PACK("few.jsonl", "own", "whole/vocab.txt", "features.normalise=global");
#undef PACK
    FOR_EACH (k, same) {
        snprintf(dumped, sizeof dumped, "%s.npz", same[k]);
        assert_code(BMUF("eval", "global", same[k], "--dump", dumped), 0);
        assert_same_files("like.npz", dumped);
    }
    assert_fails(BMUF("eval", "global", "own"), 65,
                 "features.normalise = global has the means of another set");
    assert_code(BMUF("eval", "global", "own", "--force", "--dump", "own.npz"),
                0);
    own = dump_read("own.npz");
    like = dump_read("like.npz");
    assert_memory_not_equal(dump_find(&own, "test-0")->x,
                            dump_find(&like, "test-0")->x, sizeof(float));
    dump_free(&own);
    dump_free(&like);
    /* The numbers are not for people. */
    assert_int_equal(count_of(BMUF("info", "whole").out, "scale"), 0);
    assert_true(strlen(BMUF("info", "whole").out) < 2000);
}

/* ---- runs ---------------------------------------------------------------- */

static void test_of_a_run_the_best_model_is_scored(void **_)
{
    json_t *result = NULL, *best = NULL;
    outcome o;

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "whole-run"), 0);
    best = last_event("whole-run", "best");
    result = result_of(BMUF("eval", "whole-run", "test", "--json"));
    assert_string_equal(text(result, "model"),
                        "whole-run/model-best.safetensors");
    assert_true(near(number(result, "ler"), number(best, "ler"), 1e-8));
    json_decref(result);
    json_decref(best);
    assert_says(BMUF("eval", "whole-run/", "test").out,
                "model           whole-run/model-best.safetensors\n");
    assert_says(BMUF("eval", "whole-run/model.safetensors", "test").out,
                "model           whole-run/model.safetensors\n");
    assert_int_equal(unlink(in_folder("whole-run/model-best.safetensors")), 0);
    o = BMUF("eval", "whole-run", "test");
    assert_code(o, 0);
    assert_says(o.out, "model           whole-run/model.safetensors\n");
    assert_int_equal(mkdir(in_folder("no-run"), 0777), 0);
    assert_fails(BMUF("eval", "no-run", "test"), 66,
                 "no-run has neither model-best.safetensors nor "
                 "model.safetensors");
}

/* ---- invalid input ------------------------------------------------------ */

static void test_data_that_do_not_fit_the_model_are_rejected(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "wide"), 0);
    assert_fails(BMUF("eval", "half.safetensors", "wide"), 65,
                 "wide has other features than the model half.safetensors (40 "
                 "in a frame, not 8):\n"
                 "  features.mels is 40, should be 8: --set features.mels=8\n");
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "worded",
                     "--units", "words", "--set", "features.mels=8"),
                0);
    assert_fails(BMUF("eval", "half.safetensors", "worded"), 65,
                 "worded has 17 words, the model half.safetensors has 5 "
                 "characters; the first that differs is 'a' in place of "
                 "'<space>'; pack it with --vocab TRAINING-DATA");
    write_text("line.pgm", "P5\n4 4\n255\n0123456789abcdef");
    write_text("line.jsonl",
               "{\"id\": \"l\", \"image\": \"line.pgm\", \"text\": \"a\"}\n");
    assert_code(BMUF("pack", "--images", "line.jsonl", "--out", "line"), 0);
    assert_fails(BMUF("eval", "half.safetensors", "line"), 65,
                 "line has images, the model half.safetensors was trained on "
                 "recordings\n");
    write_text("wordless.jsonl",
               "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n");
    assert_code(BMUF("pack", "--audio", "wordless.jsonl", "--out", "wordless",
                     "--set", "features.mels=8"),
                0);
    assert_fails(BMUF("eval", "half.safetensors", "wordless"), 65,
                 "wordless has no labels, and no vocabulary for them");
    write_text("test.tsv", "id\taudio\na\ttest-0.wav\n");
    assert_fails(BMUF("eval", "half.safetensors", "test.tsv"), 65,
                 "bmuf: test.tsv is a text, not a shard; if it is a manifest, "
                 "pack it first: bmuf pack --audio test.tsv --out DIR,");
    assert_fails(BMUF("eval", "half.safetensors", "test.jsonl"), 65,
                 "bmuf: test.jsonl is JSON, not a shard; if it is a manifest");
    assert_fails(BMUF("eval", "test.jsonl", "test"), 65,
                 "test.jsonl is JSON, not a model");
    assert_fails(BMUF("eval", "test", "half.safetensors"), 65,
                 "test is a packed set, not a model; the model or run comes "
                 "first");
    write_speech("first.wav", "ab");
    assert_fails(BMUF("decode", "first.wav", "half.safetensors"), 65,
                 "first.wav is a WAV recording, not a model; the model or run "
                 "comes first");
    assert_fails(BMUF("info", "test.jsonl"), 65, "test.jsonl is JSON, not a");
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--hyp", "no/where.trn"), 73,
        "no/where.trn", "there is no directory no/");
    /* Checked first, before even the model is read. */
    assert_fails(BMUF("eval", "no.safetensors", "test", "--hyp", "test"), 73,
                 "test is a directory");
}

/* Opening a pipe waits for its other end. */
static void test_pipes_in_place_of_files_are_refused(void **_)
{
    static const char refused[] = "pipe is a pipe, not a regular file";

    (void)_;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(mkdir(in_folder("piped"), 0777), 0);
    assert_int_equal(mkfifo(in_folder("piped/data-00000.bmuf.h5"), 0600), 0);
    assert_fails(BMUF("eval", "pipe", "test"), 66, refused);
    assert_fails(BMUF("eval", "half.safetensors", "piped"), 66,
                 "data-00000.bmuf.h5 is a pipe");
    assert_fails(BMUF("info", "pipe"), 66, "pipe");
    assert_fails(BMUF("train", "pipe", "--out", "never"), 66, refused);
    assert_fails(BMUF("pack", "--audio", "pipe", "--out", "never"), 66,
                 refused);
    assert_fails(BMUF("pack", "--audio", "test.jsonl", "--out", "never",
                      "--vocab", "pipe"),
                 66, refused);
    assert_fails(BMUF("eval", "half.safetensors", "test", "--hyp", "pipe"), 73,
                 "pipe is a device or a pipe");
    assert_int_equal(unlink(in_folder("piped/data-00000.bmuf.h5")), 0);
}

/* What a temporary file was once called, as a link to another file. */
static void test_outputs_do_not_follow_links(void **_)
{
    char *text = NULL;
    size_t n = 0;

    (void)_;
    write_text("mine", "my text");
    assert_int_equal(symlink("mine", in_folder(".l.npz.tmp")), 0);
    assert_int_equal(symlink("mine", in_folder(".l.trn.tmp")), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "l.npz",
                     "--hyp", "l.trn"),
                0);
    text = slurp(in_folder("mine"), &n);
    assert_string_equal(text, "my text");
    free(text);
}

/* The last checkpoint of a run holds its model. */
static void test_a_checkpoint_is_scored_like_its_model(void **_)
{
    outcome model, checkpoint;
    glob_t found = {0};

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "kept"), 0);
    assert_int_equal(
        glob(in_folder("kept/checkpoints/*.safetensors"), 0, NULL, &found), 0);
    model = BMUF("eval", "kept/model.safetensors", "test", "--json");
    checkpoint =
        BMUF("eval", found.gl_pathv[found.gl_pathc - 1], "test", "--json");
    assert_code(model, 0);
    assert_code(checkpoint, 0);
    assert_same_result(model.out, checkpoint.out);
    globfree(&found);
}

/* A model whose header differs in one byte. */
static void test_a_model_without_features_is_rejected(void **_)
{
    static const char right[] = "\"features\":\"8\"";
    size_t size = 0;
    char *model = slurp(in_folder("half.safetensors"), &size);
    size_t at = 0;

    (void)_;
    while (at + sizeof right < size &&
           memcmp(model + at, right, sizeof right - 1) != 0)
        at++;
    assert_true(at + sizeof right < size);
    model[at + sizeof right - 3] = '0';
    write_bytes("odd.safetensors", model, size);
    free(model);
    assert_fails(BMUF("eval", "odd.safetensors", "test"), 65,
                 "odd.safetensors: '0' is not a valid number of features");
}

/* Writes half.safetensors again, with another network and one small tensor. */
static void claim(const char *to, const char *net)
{
    static const char *const keys[] = {
        "format",           "loss",      "features", "infeasible", "units",
        "feature_settings", "vocabulary"};
    const bm_st_tensor t = {"0.lstm.wx", BM_F32, 2, {4, 8}, 32};
    const float x[32] = {0};
    bm_st_file *f = NULL;
    bm_st_writer *w = NULL;

    assert_ok(bm_st_open(&f, in_folder("half.safetensors"), false));
    assert_ok(bm_st_create(&w, in_folder(to), false));
    FOR_EACH (i, keys)
        assert_ok(bm_st_meta(w, keys[i], bm_st_text(f, keys[i])));
    assert_ok(bm_st_meta(w, "net", net));
    assert_ok(bm_st_declare(w, &t));
    assert_ok(bm_st_write(w, x, sizeof x));
    assert_ok(bm_st_commit(w, NULL));
    bm_st_close(w);
    bm_st_free(f);
}

/* The second of them has 2 TB of weights, which no test machine allocates. */
static void test_a_network_larger_than_its_file_is_rejected(void **_)
{
    static const struct {
        const char *net, *message;
    } claims[] = {
        {"lstm:20000 linear", "tensor 0.lstm.wx is [4, 8], but the network has "
                              "[80000, 8]"},
        {"linear:1048576 linear:524288 linear", "tensor 0.linear.w is missing"},
        {"stack:1048576*3 stack:16 linear", "outputs per frame; the limit is"},
        {"linear:1048576*3 linear", "weights in total"},
    };

    (void)_;
    FOR_EACH (i, claims) {
        claim("claims.safetensors", claims[i].net);
        assert_fails(BMUF("eval", "claims.safetensors", "test"), 65,
                     "claims.safetensors: ", claims[i].message);
    }
}

static void test_texts_of_a_model_do_not_reach_the_terminal_raw(void **_)
{
    outcome o;

    (void)_;
    claim("red.safetensors", "\033]0;title\a linear");
    o = BMUF("info", "red.safetensors");
    assert_code(o, 0);
    assert_says(o.out, "\\x1b]0;title\\x07 linear");
    assert_int_equal(count_of(o.out, "\033"), 0);
    o = BMUF("eval", "red.safetensors", "test");
    assert_code(o, 65);
    assert_says(o.err, "\\x1b]0;title");
    assert_int_equal(count_of(o.err, "\033"), 0);
}

static void test_with_words_as_labels_ler_is_wer(void **_)
{
    outcome o;
    json_t *result = NULL;

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "words",
                     "--units", "words", "--set", "features.mels=8", "--set",
                     "shard.unit_frames=100"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "wrun", "--set",
                     "data.train=words", "--set", "data.dev=words", "--set",
                     "train.epochs=4"),
                0);
    o = BMUF("eval", "wrun/model.safetensors", "words", "--json", "--hyp",
             "w.trn");
    assert_code(o, 0);
    result = json_loads(o.out, 0, NULL);
    assert_true(number(result, "words") > 0);
    assert_true(number(result, "words") == number(result, "labels"));
    assert_true(number(result, "wer") == number(result, "ler"));
    json_decref(result);
}

/* Trains a model that makes some errors. */
static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "half", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant"),
                0);
    return rename(in_folder("half/model.safetensors"),
                  in_folder("half.safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transcripts_go_to_stdout),
        cmocka_unit_test(test_errors_are_those_of_the_transcripts),
        cmocka_unit_test(test_intervals_are_those_of_the_transcripts),
        cmocka_unit_test(test_the_table_has_the_same_numbers),
        cmocka_unit_test(test_ranks_do_not_change_a_number),
        cmocka_unit_test(test_batches_do_not_change_transcripts),
        cmocka_unit_test(test_transcripts_are_the_best_paths_of_the_logits),
        cmocka_unit_test(test_the_loss_is_the_ctc_of_the_logits),
        cmocka_unit_test(test_models_with_fewer_bits_score_nearly_the_same),
        cmocka_unit_test(test_an_archive_has_what_its_list_says),
        cmocka_unit_test(test_an_archive_as_text_has_the_same_numbers),
        cmocka_unit_test(test_posteriors_are_the_softmax_of_the_logits),
        cmocka_unit_test(test_places_of_archives_are_checked),
        cmocka_unit_test(test_one_sequence_alone_has_its_own_loss),
        cmocka_unit_test(test_infeasible_sequences_are_counted),
        cmocka_unit_test(test_without_references_there_are_no_rates),
        cmocka_unit_test(test_sequences_without_references_do_not_count),
        cmocka_unit_test(test_an_empty_text_is_a_reference),
        cmocka_unit_test(test_other_feature_settings_are_an_error),
        cmocka_unit_test(test_the_normalisation_travels_with_the_model),
        cmocka_unit_test(test_of_a_run_the_best_model_is_scored),
        cmocka_unit_test(test_data_that_do_not_fit_the_model_are_rejected),
        cmocka_unit_test(test_pipes_in_place_of_files_are_refused),
        cmocka_unit_test(test_outputs_do_not_follow_links),
        cmocka_unit_test(test_a_checkpoint_is_scored_like_its_model),
        cmocka_unit_test(test_a_model_without_features_is_rejected),
        cmocka_unit_test(test_a_network_larger_than_its_file_is_rejected),
        cmocka_unit_test(test_texts_of_a_model_do_not_reach_the_terminal_raw),
        cmocka_unit_test(test_with_words_as_labels_ler_is_wer),
    };
    return cmocka_run_group_tests_name("eval", tests, prepare, folder_remove);
}
