/* The beam search: against enumeration of all paths, and against results of other
 * programs (from BMUF_DATA/../reference). */
#include "models/decoding/search.h"

#include "tests/support/reference/support_ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, MOST_TEXTS = 1024 };

/* Labels, and the sum of the probabilities of all their paths. */
typedef struct text {
    int32_t labels[8];
    size_t n;
    double p;
} text;

static text texts[MOST_TEXTS];
static size_t n_texts;

/* Leaves out spaces at both ends, and all but one between words. */
static void trim(text *x, int32_t space)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        if (x->labels[i] != space || (n > 0 && x->labels[n - 1] != space))
            x->labels[n++] = x->labels[i];
    x->n = n > 0 && x->labels[n - 1] == space ? n - 1 : n;
}

/* The labels of path number `path` of C^T; returns log p. */
static double read_path(size_t path, size_t T, size_t C, const float *y,
                        text *out)
{
    size_t last = 0;
    double log_p = 0;

    out->n = 0;
    for (size_t t = 0; t < T; t++, path /= C) {
        size_t k = path % C;

        log_p += (double)y[t * C + k];
        if (k != 0 && k != last)
            out->labels[out->n++] = (int32_t)k;
        last = k;
    }
    return log_p;
}

static bool same(const text *a, const int32_t *labels, size_t n)
{
    return a->n == n && memcmp(a->labels, labels, n * sizeof *labels) == 0;
}

static int by_probability(const void *a, const void *b)
{
    const text *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p ? -1 : 1) : 0;
}

/* texts <- all label sequences, the most probable first. */
static void enumerate(size_t T, size_t C, int32_t space, const float *y)
{
    size_t paths = 1;

    n_texts = 0;
    for (size_t t = 0; t < T; t++)
        paths *= C;
    for (size_t path = 0; path < paths; path++) {
        text x = {.n = 0};
        double p = exp(read_path(path, T, C, y, &x));
        size_t i = 0;

        trim(&x, space);
        while (i < n_texts && !same(&texts[i], x.labels, x.n))
            i++;
        assert_true(i < MOST_TEXTS);
        if (i == n_texts)
            texts[n_texts++] = x;
        texts[i].p += p;
    }
    qsort(texts, n_texts, sizeof *texts, by_probability);
}

/* Of a hypothesis, by the enumeration. */
static double probability(const bm_hypothesis *h, int32_t space)
{
    text x = {.n = h->n_labels};
    size_t i = 0;

    for (size_t k = 0; k < x.n; k++)
        x.labels[k] = h->labels[k].label;
    trim(&x, space);
    while (i < n_texts && !same(&texts[i], x.labels, x.n))
        i++;
    assert_true(i < n_texts);
    return texts[i].p;
}

static bm_decoder_settings unlimited(size_t classes)
{
    bm_decoder_settings s = bm_decoder_defaults(classes, -1);

    s.beam = s.nbest = 10000;
    s.threshold = INFINITY;
    s.symbol_threshold = -INFINITY;
    return s;
}

static void posteriors(uint64_t key, size_t T, size_t C, double scale, float *y)
{
    float *x = normals(key, T * C, scale);

    bm_log_posteriors(x, T, C, C, y);
    free(x);
}

static void test_an_unlimited_beam_has_the_sums_of_all_paths(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        size_t T = n % 6, C = 1 + n / 6 % 4;
        bm_decoder_settings s = unlimited(C);
        bm_decoder *d = NULL;
        bm_hypotheses found;
        float y[MOST];

        posteriors(n, T, C, 1 + (double)(n % 3), y);
        enumerate(T, C, -1, y);
        assert_ok(bm_decoder_new(&d, &s));
        assert_ok(bm_decoder_run(d, y, T, &found));
        assert_int_equal(found.n, n_texts);
        for (size_t i = 0; i < found.n; i++) {
            const bm_hypothesis *h = &found.best[i];

            assert_true(near(h->score, log(probability(h, -1)), 1e-9));
            assert_true(near(exp(h->score), texts[i].p, 1e-9));
        }
        bm_decoder_free(d);
    }
}

/* No two texts differ in spaces alone: class 1. */
static void test_several_spaces_are_as_one(void **state)
{
    enum { C = 4 };

    (void)state;
    for (size_t n = 0; n < 12; n++) {
        size_t T = n % 6;
        bm_decoder_settings s = unlimited(C);
        bm_decoder *d = NULL;
        bm_hypotheses found;
        float y[MOST];

        s.space = 1;
        posteriors(200 + n, T, C, 1, y);
        enumerate(T, C, s.space, y);
        assert_ok(bm_decoder_new(&d, &s));
        assert_ok(bm_decoder_run(d, y, T, &found));
        assert_int_equal(found.n, n_texts);
        for (size_t i = 0; i < found.n; i++) {
            const bm_hypothesis *h = &found.best[i];

            assert_true(near(h->score, log(probability(h, s.space)), 1e-9));
        }
        bm_decoder_free(d);
    }
}

/* The best path among those of a text, by enumeration: the frames of labels. */
static double best_path(size_t T, size_t C, const float *y,
                        const bm_hypothesis *h, int32_t *first, int32_t *last)
{
    size_t paths = 1, best = 0;
    double most = -INFINITY;
    text x;

    for (size_t t = 0; t < T; t++)
        paths *= C;
    for (size_t path = 0; path < paths; path++) {
        double log_p = read_path(path, T, C, y, &x);
        bool equal = x.n == h->n_labels;

        for (size_t k = 0; equal && k < x.n; k++)
            equal = x.labels[k] == h->labels[k].label;
        if (equal && log_p > most) {
            most = log_p;
            best = path;
        }
    }
    for (size_t t = 0, k = 0, before = 0; t < T; t++, best /= C) {
        size_t c = best % C;

        if (c != 0 && c != before) {
            first[k] = (int32_t)t;
            k++;
        }
        if (c != 0)
            last[k - 1] = (int32_t)t;
        before = c;
    }
    return most;
}

static void test_frames_are_those_of_the_best_path(void **state)
{
    (void)state;
    for (size_t n = 0; n < 30; n++) {
        size_t T = 1 + n % 6, C = 2 + n % 3;
        bm_decoder_settings s = unlimited(C);
        bm_decoder *d = NULL;
        bm_hypotheses found;
        float y[MOST];

        posteriors(100 + n, T, C, 2, y);
        assert_ok(bm_decoder_new(&d, &s));
        assert_ok(bm_decoder_run(d, y, T, &found));
        for (size_t i = 0; i < found.n && i < 10; i++) {
            const bm_hypothesis *h = &found.best[i];
            int32_t first[8] = {0}, last[8] = {0};

            best_path(T, C, y, h, first, last);
            for (size_t k = 0; k < h->n_labels; k++) {
                assert_int_equal(h->labels[k].first, first[k]);
                assert_int_equal(h->labels[k].last, last[k]);
                assert_true(h->labels[k].confidence >= 0 &&
                            h->labels[k].confidence <= 1);
            }
        }
        bm_decoder_free(d);
    }
}

/* Renumbers classes so that the blank is 0. */
static int32_t moved(int32_t k, int32_t blank)
{
    return k == blank ? 0 : k < blank ? k + 1 : k;
}

/* y <- log posteriors of a known answer; probabilities as they are. */
static void read_rows(const json_t *item, size_t T, size_t C, float *y)
{
    bool logits = json_object_get(item, "logits") != NULL;
    const json_t *rows = json_object_get(item, logits ? "logits" : "prob");
    int32_t blank = (int32_t)json_integer_value(json_object_get(item, "blank"));

    assert_true(T * C <= MOST);
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < C; k++) {
            double x =
                json_number_value(json_array_get(json_array_get(rows, t), k));

            y[t * C + (size_t)moved((int32_t)k, blank)] =
                (float)(logits ? x : log(x));
        }
    if (logits)
        bm_log_posteriors(y, T, C, C, y);
}

static void check_nbest(const json_t *item, const json_t *nbest, size_t beam)
{
    bool logits = json_object_get(item, "logits") != NULL;
    const json_t *rows = json_object_get(item, logits ? "logits" : "prob");
    const json_t *expected = NULL;
    size_t T = json_array_size(rows), i = 0;
    size_t C = json_array_size(json_array_get(rows, 0));
    int32_t blank = (int32_t)json_integer_value(json_object_get(item, "blank"));
    bm_decoder_settings s = unlimited(C);
    bm_decoder *d = NULL;
    bm_hypotheses found;
    float y[MOST];

    print_message("%s\n", json_string_value(json_object_get(item, "name")));
    s.beam = beam;
    read_rows(item, T, C, y);
    assert_ok(bm_decoder_new(&d, &s));
    assert_ok(bm_decoder_run(d, y, T, &found));
    json_array_foreach(nbest, i, expected)
    {
        const json_t *labels = json_object_get(expected, "label");

        assert_true(i < found.n);
        assert_true(near(found.best[i].score,
                         json_number_value(json_object_get(expected, "logp")),
                         1e-5));
        assert_int_equal(found.best[i].n_labels, json_array_size(labels));
        for (size_t k = 0; k < found.best[i].n_labels; k++)
            assert_int_equal(
                found.best[i].labels[k].label,
                moved((int32_t)json_integer_value(json_array_get(labels, k)),
                      blank));
    }
    bm_decoder_free(d);
}

static void test_beams_match_other_programs(void **state)
{
    json_t *known = known_answers(), *item = NULL;
    size_t i = 0, narrow = 0;

    (void)state;
    if (known == NULL)
        skip();
    json_array_foreach(json_object_get(known, "decode"), i, item)
    {
        const json_t *beam2 = json_object_get(item, "beam2");

        check_nbest(item, json_object_get(item, "nbest"), 10000);
        if (beam2 != NULL) {
            check_nbest(item, beam2, 2);
            narrow++;
        }
    }
    assert_true(i > 0 && narrow > 0);
    json_decref(known);
}

/* One search of one frame or more; the decoder stays open for the result. */
static bm_decoder *search(const bm_decoder_settings *s, const float *y,
                          size_t T, bm_hypotheses *found)
{
    bm_decoder *d = NULL;

    assert_ok(bm_decoder_new(&d, s));
    assert_ok(bm_decoder_run(d, y, T, found));
    return d;
}

static void test_ties_go_to_the_shorter_and_the_lower(void **state)
{
    static const float y[] = {0, 0, 0, 0};
    bm_decoder_settings s = unlimited(4);
    bm_hypotheses found;
    bm_decoder *d = search(&s, y, 1, &found);

    (void)state;
    assert_int_equal(found.n, 4);
    assert_int_equal(found.best[0].n_labels, 0);
    for (int32_t k = 1; k < 4; k++)
        assert_int_equal(found.best[k].labels[0].label, k);
    bm_decoder_free(d);
    s.beam = 2; /* the same of fewer */
    d = search(&s, y, 1, &found);
    assert_int_equal(found.n, 2);
    assert_int_equal(found.best[0].n_labels, 0);
    assert_int_equal(found.best[1].labels[0].label, 1);
    bm_decoder_free(d);
}

static void test_confidence_is_the_share_of_hypotheses(void **state)
{
    /* 1 or 2, then a certain 3 behind a blank */
    const float y[] = {-INFINITY, logf(0.75F), logf(0.25F), -INFINITY,
                       0,         -INFINITY,   -INFINITY,   -INFINITY,
                       -INFINITY, -INFINITY,   -INFINITY,   0};
    bm_decoder_settings s = unlimited(4);
    bm_hypotheses found;
    bm_decoder *d = search(&s, y, 3, &found);

    (void)state;
    assert_int_equal(found.n, 2);
    for (size_t i = 0; i < 2; i++) {
        const bm_hypothesis *h = &found.best[i];

        assert_int_equal(h->n_labels, 2);
        assert_int_equal(h->n_words, 2); /* without a space each is a word */
        assert_int_equal(h->labels[0].label, i + 1);
        assert_true(near(h->labels[0].confidence, i == 0 ? 0.75 : 0.25, 1e-6));
        assert_true(near(h->labels[1].confidence, 1, 1e-6));
        assert_true(near(h->words[0].confidence, i == 0 ? 0.75 : 0.25, 1e-6));
        assert_int_equal(h->labels[1].first, 2);
    }
    bm_decoder_free(d);
    s.nbest = 1; /* the other hypothesis counts all the same */
    d = search(&s, y, 3, &found);
    assert_int_equal(found.n, 1);
    assert_true(near(found.best[0].labels[0].confidence, 0.75, 1e-6));
    assert_true(near(found.best[0].words[0].confidence, 0.75, 1e-6));
    bm_decoder_free(d);
    /* As one word, with 3 as a space of its own: the same labels. */
    s.space = 3;
    d = search(&s, y, 3, &found);
    assert_int_equal(found.best[0].n_words, 1);
    assert_int_equal(found.best[0].words[0].end, 1);
    assert_true(near(found.best[0].words[0].confidence, 0.75, 1e-6));
    bm_decoder_free(d);
}

/* p(w) = .95 .4 .95: "w w" is the path w - w; "w" the other paths with a w. */
static void test_a_word_of_a_hypothesis_supports_one_word(void **state)
{
    const double twice = 0.95 * 0.6 * 0.95, none = 0.05 * 0.6 * 0.05;
    const float y[] = {logf(0.05F), logf(0.95F), logf(0.6F),
                       logf(0.4F),  logf(0.05F), logf(0.95F)};
    bm_decoder_settings s = unlimited(2);
    bm_hypotheses found;
    bm_decoder *d = search(&s, y, 3, &found);
    const bm_hypothesis *h = &found.best[0];

    (void)state;
    assert_int_equal(found.n, 3);
    assert_int_equal(h->n_words, 2);
    assert_true(near(h->words[0].confidence, 1 - none, 1e-6));
    assert_true(near(h->words[1].confidence, twice, 1e-6));
    assert_true(near(h->labels[0].confidence, 1 - none, 1e-6));
    assert_true(near(h->labels[1].confidence, twice, 1e-6));
    h = &found.best[1]; /* both have one */
    assert_int_equal(h->n_words, 1);
    assert_true(near(h->words[0].confidence, 1 - none, 1e-6));
    assert_true(near(h->labels[0].confidence, 1 - none, 1e-6));
    bm_decoder_free(d);
}

/* Eesen's: counts of labels, blanks times their scale, normalised. */
static void test_priors_are_those_of_counts(void **state)
{
    static const uint64_t counts[] = {6, 3, 1, 0};
    float priors[4], y[4 * 4], divided[4 * 4];
    bm_decoder_settings s = unlimited(4);
    bm_hypotheses found[2];
    bm_decoder *d[2];

    (void)state;
    bm_log_priors(counts, 4, 0.5, priors);
    assert_true(near(priors[0], log(3.0 / 7), 1e-6));
    assert_true(near(priors[1], log(3.0 / 7), 1e-6));
    assert_true(near(priors[2], log(1.0 / 7), 1e-6));
    assert_true(priors[3] == INFINITY);
    posteriors(7, 4, 4, 1, y);
    for (size_t i = 0; i < 16; i++)
        divided[i] = y[i] - 0.5F * priors[i % 4];
    d[0] = search(&s, divided, 4, &found[0]);
    s.log_priors = priors;
    s.prior_scale = 0.5;
    d[1] = search(&s, y, 4, &found[1]);
    assert_int_equal(found[0].n, found[1].n);
    for (size_t i = 0; i < found[0].n; i++) {
        assert_true(near(found[1].best[i].score, found[0].best[i].score, 1e-5));
        for (size_t k = 0; k < found[1].best[i].n_labels; k++)
            assert_int_not_equal(found[1].best[i].labels[k].label, 3);
    }
    bm_decoder_free(d[0]);
    bm_decoder_free(d[1]);
}

static void test_only_the_best_labels_extend(void **state)
{
    bm_decoder_settings s = unlimited(4);
    bm_hypotheses all, found;
    bm_decoder *d[2];
    float y[3 * 4];

    (void)state;
    posteriors(3, 3, 4, 1, y);
    d[0] = search(&s, y, 3, &all);
    s.symbol_threshold = 0; /* none but the best one */
    d[1] = search(&s, y, 3, &found);
    assert_true(found.n < all.n);
    for (size_t i = 0; i < found.n; i++)
        for (size_t k = 0; k < found.best[i].n_labels; k++) {
            const bm_found_label *l = &found.best[i].labels[k];

            for (int32_t c = 1; c < 4; c++)
                assert_true(y[4 * l->first + c] <= y[4 * l->first + l->label]);
        }
    bm_decoder_free(d[0]);
    bm_decoder_free(d[1]);
}

/* So many prefixes that those without hypotheses are removed on the way. A score
 * is at most that of all paths. */
static void test_long_sequences_are_searched(void **state)
{
    enum { T = 2000, C = 20 };
    bm_decoder_settings s = bm_decoder_defaults(C, -1);
    bm_hypotheses found[2];
    bm_decoder *d[2];
    float *y = normals(5, (size_t)T * C, 2);
    const bm_hypothesis *h = NULL;
    int32_t *labels = zeros(T, sizeof *labels), last = -1;
    double loss = 0, *dy = zeros((size_t)T * C, sizeof *dy);

    (void)state;
    bm_log_posteriors(y, T, C, C, y);
    s.symbol_threshold = -INFINITY;
    s.threshold = INFINITY;
    d[0] = search(&s, y, T, &found[0]);
    h = &found[0].best[0];
    for (size_t k = 0; k < h->n_labels; k++) {
        labels[k] = h->labels[k].label;
        assert_true(h->labels[k].first > last);
        last = h->labels[k].last;
        assert_true(h->labels[k].first <= last && last < T);
    }
    loss = ctc_reference(T, C, y, labels, h->n_labels, dy);
    assert_true(-h->score >= loss - 1e-6);
    assert_ok(bm_decoder_run(d[0], y, 10, &found[1])); /* used again */
    d[1] = search(&s, y, 10, &found[0]);
    assert_true(found[0].best[0].score == found[1].best[0].score);
    bm_decoder_free(d[0]);
    bm_decoder_free(d[1]);
    free(labels);
    free(dy);
    free(y);
}

static void test_sequences_without_paths_have_no_hypothesis(void **state)
{
    static const float y[] = {NAN, -INFINITY, 0, NAN, NAN, NAN};
    bm_decoder_settings s = bm_decoder_defaults(3, -1);
    bm_hypotheses found;
    bm_decoder *d = search(&s, y, 2, &found);

    (void)state;
    assert_int_equal(found.n, 0);
    assert_ok(bm_decoder_run(d, y, 1, &found));
    assert_int_equal(found.n, 1);
    assert_int_equal(found.best[0].labels[0].label, 2);
    assert_ok(bm_decoder_run(d, y, 0, &found));
    assert_int_equal(found.n, 1);
    assert_true(found.best[0].score == 0);
    bm_decoder_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unlimited_beam_has_the_sums_of_all_paths),
        cmocka_unit_test(test_several_spaces_are_as_one),
        cmocka_unit_test(test_frames_are_those_of_the_best_path),
        cmocka_unit_test(test_beams_match_other_programs),
        cmocka_unit_test(test_ties_go_to_the_shorter_and_the_lower),
        cmocka_unit_test(test_confidence_is_the_share_of_hypotheses),
        cmocka_unit_test(test_a_word_of_a_hypothesis_supports_one_word),
        cmocka_unit_test(test_priors_are_those_of_counts),
        cmocka_unit_test(test_only_the_best_labels_extend),
        cmocka_unit_test(test_long_sequences_are_searched),
        cmocka_unit_test(test_sequences_without_paths_have_no_hypothesis),
    };
    return RUN_GROUP("beam", tests);
}
