/* Forced alignment against known answers, all paths and plain Viterbi; edit
 * distances with other costs and alternatives, against all texts of a reference;
 * matched pairs by hand. */
#include "models/align.h"
#include "models/edit.h"
#include "models/matched_pairs.h"
#include "tests/support/reference/support_ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- forced alignment ---------------------------------------------------- */

enum { MOST_FRAMES = 400, MOST_LABELS = 80 };

/* The class of each frame that spans stand for. */
static void as_path(const bm_label_span *spans, const int32_t *labels, size_t n,
                    size_t frames, int32_t *path)
{
    memset(path, 0, frames * sizeof *path);
    for (size_t i = 0; i < n; i++) {
        assert_true(spans[i].first >= (i > 0 ? spans[i - 1].last + 1 : 0));
        assert_true(spans[i].first <= spans[i].last);
        assert_true((size_t)spans[i].last < frames);
        for (int32_t t = spans[i].first; t <= spans[i].last; t++)
            path[t] = labels[i];
    }
}

static void assert_path(const float *y, size_t T, size_t C,
                        const int32_t *labels, size_t n, const int32_t *path,
                        double log_p)
{
    bm_label_span spans[MOST_LABELS];
    int32_t got[MOST_FRAMES];
    double score = 0;

    assert_ok(bm_ctc_align(y, T, C, C, labels, n, spans, &score));
    assert_true(near(score, log_p, 1e-6));
    as_path(spans, labels, n, T, got);
    assert_memory_equal(got, path, T * sizeof *got);
}

/* The answers of reference/ctc.md, section 4: classes in the order in which the
 * blank is 0. */
static void test_known_paths_are_found(void **state)
{
    static const double p[4][3] = {
        {.3, .5, .2}, {.4, .5, .1}, {.5, .1, .4}, {.1, .7, .2}};
    static const struct {
        int32_t blank, label[4];
        size_t n;
        int32_t path[4];
        double p;
    } known[] = {
        {0, {0}, 0, {0, 0, 0, 0}, .006},
        {2, {0}, 0, {2, 2, 2, 2}, .0016},
        {0, {1}, 1, {0, 0, 0, 1}, .042},
        {1, {2}, 1, {1, 1, 2, 1}, .07},
        {0, {2, 2}, 2, {2, 0, 0, 2}, .008},
        {0, {1, 2, 2}, 3, {1, 2, 0, 2}, .005},
        {2, {1, 0}, 2, {1, 1, 0, 2}, .025},
        {1, {0, 2, 0, 2}, 4, {0, 2, 0, 2}, .003},
    };

    (void)state;
    FOR_EACH (k, known) {
        int32_t blank = known[k].blank, labels[4], path[4];
        float y[12];

#define MOVED(c) ((c) == blank ? 0 : (c) < blank ? (c) + 1 : (c))
        for (int32_t t = 0; t < 4; t++)
            for (int32_t c = 0; c < 3; c++)
                y[t * 3 + MOVED(c)] = (float)log(p[t][c]) + 5;
        for (size_t i = 0; i < 4; i++) {
            labels[i] = MOVED(known[k].label[i]);
            path[i] = MOVED(known[k].path[i]);
        }
#undef MOVED
        assert_path(y, 4, 3, labels, known[k].n, path, log(known[k].p));
    }
}

/* Do frames of this path collapse to the labels? */
static bool collapses(const int32_t *path, size_t T, const int32_t *labels,
                      size_t n)
{
    size_t found = 0;

    for (size_t t = 0; t < T; t++) {
        if (path[t] == 0 || (t > 0 && path[t] == path[t - 1]))
            continue;
        if (found == n || path[t] != labels[found++])
            return false;
    }
    return found == n;
}

/* ln p of the best of all C^T paths; -INFINITY: none fits. */
static double best_of_all(const float *y, size_t T, size_t C,
                          const int32_t *labels, size_t n)
{
    double best = -INFINITY, log_p[8][4];
    size_t paths = 1;

    for (size_t t = 0; t < T; t++) {
        log_softmax(C, y + t * C, log_p[t]);
        paths *= C;
    }
    for (size_t k = 0; k < paths; k++) {
        size_t rest = k;
        int32_t path[8];
        double sum = 0;

        for (size_t t = 0; t < T; t++, rest /= C) {
            path[t] = (int32_t)(rest % C);
            sum += log_p[t][path[t]];
        }
        if (collapses(path, T, labels, n))
            best = fmax(best, sum);
    }
    return best;
}

static void test_no_path_is_better(void **state)
{
    size_t none = 0;

    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        size_t T = 2 + pick(4 * k, 6), C = 3, n = pick(4 * k + 1, 4);
        float *y = normals(1000 * k, T * C, 2);
        int32_t labels[5], path[8];
        bm_label_span spans[5];
        double score = 0, sum = 0, best = 0, log_p[3];

        for (size_t i = 0; i < n; i++)
            labels[i] = 1 + (int32_t)pick(10 * k + i + 7000, 2);
        best = best_of_all(y, T, C, labels, n);
        assert_ok(bm_ctc_align(y, T, C, C, labels, n, spans, &score));
        none += isinf(best) != 0;
        if (isinf(best)) {
            assert_true(score == -INFINITY);
            free(y);
            continue;
        }
        assert_true(near(score, best, 1e-9));
        as_path(spans, labels, n, T, path);
        assert_true(collapses(path, T, labels, n));
        for (size_t t = 0; t < T; t++) {
            log_softmax(C, y + t * C, log_p);
            sum += log_p[path[t]];
        }
        assert_true(near(score, sum, 1e-9));
        free(y);
    }
    assert_in_range(none, 10, 150);
}

/* The whole table, with the rule for ties: of equal scores the lowest state. */
static void plainly(const float *y, size_t T, size_t C, const int32_t *labels,
                    size_t n, int32_t *path)
{
    size_t S = 2 * n + 1, s = 0;
    double *a = zeros(T * S, sizeof *a);
    size_t *from = zeros(T * S, sizeof *from);

    for (size_t t = 0; t < T; t++) {
        double log_p[8];

        log_softmax(C, y + t * C, log_p);
        for (s = 0; s < S; s++) {
            int32_t label = s % 2 == 0 ? 0 : labels[s / 2];
            double best = -INFINITY;

            for (size_t rise = 3; rise-- > 0 && t > 0;) {
                if (rise > s ||
                    (rise == 2 && (label == 0 || label == labels[s / 2 - 1])))
                    continue;
                if (a[(t - 1) * S + s - rise] > best) {
                    best = a[(t - 1) * S + s - rise];
                    from[t * S + s] = s - rise;
                }
            }
            if (t == 0)
                best = s < 2 ? 0 : -INFINITY;
            a[t * S + s] = best + log_p[label];
        }
    }
    s = S - 1;
    if (n > 0 && a[(T - 1) * S + S - 2] >= a[(T - 1) * S + S - 1])
        s = S - 2;
    for (size_t t = T; t-- > 0; s = from[t * S + s])
        path[t] = s % 2 == 0 ? 0 : labels[s / 2];
    free(a);
    free(from);
}

/* Long enough for many segments, which see parts of the states; equal logits
 * make ties everywhere. */
static void test_paths_are_those_of_the_whole_table(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 60; k++) {
        enum { C = 5 };
        size_t n = k % 7 == 0 ? 0 : 1 + pick(5 * k, MOST_LABELS - 1);
        size_t T = 2 * n + 1 + pick(5 * k + 1, MOST_FRAMES - 2 * n - 1);
        float *y = normals(500 * k, T * C, k % 3 == 0 ? 0 : 3);
        int32_t labels[MOST_LABELS], path[MOST_FRAMES], got[MOST_FRAMES];
        bm_label_span spans[MOST_LABELS];
        double score = 0;

        for (size_t i = 0; i < T * C; i++) /* exact sums: ties stay ties */
            y[i] = k % 3 == 1 ? roundf(y[i]) : y[i];
        for (size_t i = 0; i < n; i++)
            labels[i] = 1 + (int32_t)pick(90 * k + i, C - 1);
        assert_ok(bm_ctc_align(y, T, C, C, labels, n, spans, &score));
        assert_true(isfinite(score));
        as_path(spans, labels, n, T, got);
        if (k % 3 != 1) { /* rounding decides there */
            plainly(y, T, C, labels, n, path);
            assert_memory_equal(got, path, T * sizeof *got);
        } else {
            assert_true(collapses(got, T, labels, n));
        }
        free(y);
    }
}

static void test_scores_of_labels_are_means_over_their_frames(void **state)
{
    static const float y[] = {0, 9, 1, 8, 9, 0, 0, 0, 9};
    static const int32_t labels[] = {1, 2};
    bm_label_span spans[2];
    double score = 0, p[3][3];

    (void)state;
    for (size_t t = 0; t < 3; t++)
        log_softmax(3, y + 3 * t, p[t]);
    assert_ok(bm_ctc_align(y, 3, 3, 3, labels, 2, spans, &score));
    assert_true(spans[0].first == 0 && spans[0].last == 1);
    assert_true(spans[1].first == 2 && spans[1].last == 2);
    assert_true(near(spans[0].log_p, (p[0][1] + p[1][1]) / 2, 1e-12));
    assert_true(near(spans[1].log_p, p[2][2], 1e-12));
    assert_true(near(score, p[0][1] + p[1][1] + p[2][2], 1e-12));
}

static void test_what_cannot_be_aligned_is_told_by_the_score(void **state)
{
    float y[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    static const int32_t twice[] = {1, 1, 2};
    bm_label_span spans[3] = {{7, 7, 7}, {7, 7, 7}, {7, 7, 7}};
    double score = 0;

    (void)state;
    assert_ok(bm_ctc_align(y, 3, 3, 3, twice, 3, spans, &score));
    assert_true(score == -INFINITY && spans[0].first == 7);
    assert_ok(bm_ctc_align(y, 0, 3, 3, twice, 1, spans, &score));
    assert_true(score == -INFINITY);
    assert_ok(bm_ctc_align(y, 0, 3, 3, NULL, 0, spans, &score));
    assert_true(score == -INFINITY);
    y[4] = NAN;
    assert_ok(bm_ctc_align(y, 3, 3, 3, twice, 2, spans, &score));
    assert_true(isnan(score) && spans[0].first == 7);
    y[4] = -INFINITY; /* the label of the only path */
    y[1] = y[7] = -INFINITY;
    assert_ok(bm_ctc_align(y, 3, 3, 3, twice, 2, spans, &score));
    assert_true(score == -INFINITY && spans[0].first == 7);
}

/* ---- edit distances ------------------------------------------------------ */

static bm_edits count(const bm_pair *pairs, size_t n)
{
    bm_edits e = {0};

    for (size_t k = 0; k < n; k++) {
        e.deletions += pairs[k].hyp < 0;
        e.insertions += pairs[k].ref < 0;
        e.substitutions += pairs[k].ref >= 0 && pairs[k].hyp >= 0 &&
                           pairs[k].ref != pairs[k].hyp;
    }
    return e;
}

static void test_costs_of_sclite_make_other_alignments(void **state)
{
    static const int32_t a[] = {0, 1, 2, 3, 4, 5, 6},
                         b[] = {4, 5, 6, 7, 8, 9, 10}, swapped[] = {1, 0};
    bm_edits e = {0};

    (void)state;
    assert_ok(bm_edit_priced(a, 7, b, 7, &bm_edit_sclite, &e));
    assert_true(e.insertions == 4 && e.deletions == 4 && e.substitutions == 0);
    assert_ok(bm_edit(a, 7, b, 7, &e));
    assert_true(e.insertions == 0 && e.deletions == 0 && e.substitutions == 7);
    assert_ok(bm_edit_priced(a, 2, swapped, 2, &bm_edit_sclite, &e));
    assert_true(e.insertions == 1 && e.deletions == 1 && e.substitutions == 0);
}

static size_t cost(bm_edits e, const bm_edit_costs *c)
{
    return e.substitutions * c->substitution + e.deletions * c->deletion +
           e.insertions * c->insertion;
}

/* The least cost over all texts of a graph, one after the other. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static size_t least(const bm_text_graph *g, size_t node, int32_t *text,
                    size_t n, const int32_t *hyp, size_t n_hyp,
                    const bm_edit_costs *costs)
{
    size_t best = SIZE_MAX;

    if (node == g->n_nodes - 1) {
        bm_edits e = {0};

        assert_ok(bm_edit_priced(text, n, hyp, n_hyp, costs, &e));
        return cost(e, costs);
    }
    for (size_t k = 0; k < g->n_arcs; k++) {
        const bm_text_arc *a = &g->arcs[k];
        size_t found = 0;

        if (a->from != node)
            continue;
        if (a->symbol >= 0)
            text[n] = a->symbol;
        found = least(g, a->to, text, n + (a->symbol >= 0), hyp, n_hyp, costs);
        best = found < best ? found : best;
    }
    return best;
}

static void test_the_best_alternative_is_aligned(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        enum { NODES = 6, ARCS = 12 };
        bm_text_arc arcs[ARCS];
        bm_text_graph g = {arcs, 0, NODES};
        const bm_edit_costs *costs =
            k % 2 == 0 ? &bm_edit_unit : &bm_edit_sclite;
        int32_t hyp[8], text[NODES];
        bm_pair pairs[ARCS + 8];
        size_t n_hyp = pick(100 * k, 8), n = 0, j = 0;

        for (size_t to = 1; to < NODES; to++)
            for (size_t i = 0; i < 1 + pick(100 * k + 10 * to, 2); i++)
                arcs[g.n_arcs++] = (bm_text_arc){
                    i == 0 ? to - 1 : pick(100 * k + 10 * to + 1, to), to,
                    (int32_t)pick(100 * k + 10 * to + 2 + i, 4) - 1};
        for (size_t i = 0; i < n_hyp; i++)
            hyp[i] = (int32_t)pick(100 * k + 80 + i, 3);
        assert_ok(bm_align_graph(&g, hyp, n_hyp, costs, pairs, &n));
        assert_int_equal(cost(count(pairs, n), costs),
                         least(&g, 0, text, 0, hyp, n_hyp, costs));
        for (size_t i = 0; i < n; i++)
            if (pairs[i].hyp >= 0)
                assert_int_equal(pairs[i].hyp, hyp[j++]);
        assert_int_equal(j, n_hyp);
    }
}

/* out <- the alignment by the table of all costs, from its end: a match or
 * substitution, else a deletion, else an insertion. Returns its first pair. */
static size_t align_slowly(const int32_t *ref, size_t n, const int32_t *hyp,
                           size_t m, const bm_edit_costs *c, bm_pair *out)
{
    size_t *table = zeros((n + 1) * (m + 1), sizeof *table), at = n + m;
    size_t i = n, j = m;

#define AT(i, j) table[(i) * (m + 1) + (j)]
    for (i = 0; i <= n; i++)
        for (j = 0; j <= m; j++) {
            size_t best = i == 0 && j == 0 ? 0 : SIZE_MAX, next = 0;

            if (i > 0 && j > 0) {
                next = ref[i - 1] == hyp[j - 1] ? 0 : c->substitution;
                best = AT(i - 1, j - 1) + next;
            }
            if (i > 0 && AT(i - 1, j) + c->deletion < best)
                best = AT(i - 1, j) + c->deletion;
            if (j > 0 && AT(i, j - 1) + c->insertion < best)
                best = AT(i, j - 1) + c->insertion;
            AT(i, j) = best;
        }
    for (i = n, j = m; i > 0 || j > 0;) {
        bm_pair pair = {-1, -1};
        bool both =
            i > 0 && j > 0 &&
            AT(i, j) == AT(i - 1, j - 1) +
                            (ref[i - 1] == hyp[j - 1] ? 0 : c->substitution);
        bool deletion =
            !both && i > 0 && AT(i, j) == AT(i - 1, j) + c->deletion;

        if (both || deletion)
            pair.ref = ref[--i];
        if (!deletion)
            pair.hyp = hyp[--j];
        out[--at] = pair;
    }
#undef AT
    free(table);
    return at;
}

/* Only a band of the table is computed. Errors of 0 to 100 %, and parts that
 * were moved, for which the band must grow. */
static void test_long_texts_are_aligned_as_by_the_whole_table(void **state)
{
    enum { MOST = 900 };
    static int32_t ref[MOST], hyp[2 * MOST];
    static bm_pair slow[3 * MOST], pairs[3 * MOST];

    (void)state;
    for (uint64_t k = 0; k < 120; k++) {
        const bm_edit_costs *costs =
            k % 2 == 0 ? &bm_edit_unit : &bm_edit_sclite;
        size_t n = pick(k << 20, MOST), m = 0, at = 0, found = 0;
        size_t errors = k % 12, move = k % 5 == 0 ? pick(k << 20 | 1, 400) : 0;
        size_t symbols = 2 + k % 7;
        bm_edits e = {0}, counted = {0};

        for (size_t i = 0; i < n; i++)
            ref[i] = (int32_t)pick(k << 20 | (16 + 4 * i), symbols);
        for (size_t i = 0; i < n; i++) {
            size_t kind = pick(k << 20 | (17 + 4 * i), 30);

            if (kind >= errors)
                hyp[m++] = ref[(i + move) % n];
            else if (kind % 3 == 0)
                hyp[m++] = (int32_t)pick(k << 20 | (18 + 4 * i), symbols);
            else if (kind % 3 == 1)
                hyp[m] = hyp[m + 1] = ref[i], m += 2;
        }
        at = align_slowly(ref, n, hyp, m, costs, slow);
        assert_ok(bm_align(ref, n, hyp, m, costs, pairs, &found));
        assert_int_equal(found, n + m - at);
        assert_memory_equal(pairs, slow + at, found * sizeof *pairs);
        assert_ok(bm_edit_priced(ref, n, hyp, m, costs, &e));
        counted = count(pairs, found);
        assert_int_equal(e.insertions, counted.insertions);
        assert_int_equal(e.deletions, counted.deletions);
        assert_int_equal(e.substitutions, counted.substitutions);
    }
}

/* ---- matched pairs ------------------------------------------------------- */

/* Pairs of a text like "a:a b:x c:- -:d", letters for words. */
static size_t read_pairs(const char *text, bm_pair *out)
{
    size_t n = 0;

    for (; text[0] != '\0'; text += text[3] == ' ' ? 4 : 3) {
        out[n].ref = text[0] == '-' ? -1 : text[0];
        out[n++].hyp = text[2] == '-' ? -1 : text[2];
    }
    return n;
}

static void compare(bm_matched_pairs *m, const char *a, const char *b)
{
    bm_pair of_a[16], of_b[16];
    size_t n_a = read_pairs(a, of_a), n_b = read_pairs(b, of_b);

    assert_ok(bm_matched_pairs_add(m, of_a, n_a, of_b, n_b));
}

static void test_two_good_words_end_a_segment(void **state)
{
    bm_matched_pairs m = {0};

    (void)state;
    compare(&m, "a:x b:b c:c d:x", "a:a b:b c:c d:d"); /* 1 and 1 */
    assert_int_equal(m.segments, 2);
    assert_true(m.sum == 2 && m.squares == 2);
    compare(&m, "a:x b:b c:x d:d", "a:a b:b c:c d:d"); /* one of 2 */
    assert_int_equal(m.segments, 3);
    assert_true(m.sum == 4 && m.squares == 6);
    /* An insertion between two good words separates them; b's errors count
     * against a's. */
    compare(&m, "a:x b:b -:y c:c d:d", "a:a b:b c:c d:x");
    assert_int_equal(m.segments, 4);
    assert_true(m.sum == 5 && m.squares == 7);
    compare(&m, "a:a b:b", "a:a b:b"); /* none */
    assert_int_equal(m.segments, 4);
    compare(&m, "a:x b:b c:c d:x", "e:e"); /* other alternatives: one of 2 */
    assert_int_equal(m.segments, 5);
    assert_true(m.sum == 7 && m.squares == 11);
}

/* Of 24 segments 12 differ by 1 and 12 not at all: mean 1/2, variance 6/23,
 * z = 1/2 / sqrt(6/23 / 24) = sqrt(23). */
static void test_z_is_the_mean_over_its_standard_error(void **state)
{
    bm_matched_pairs m = {24, 12, 12}, none = {30, 0, 2}, equal = {30, 0, 0};
    double z = 0, p = 0;

    (void)state;
    bm_matched_pairs_test(&m, &z, &p);
    assert_true(near(z, sqrt(23), 1e-12));
    assert_true(near(p, erfc(sqrt(23. / 2)), 1e-15)); /* 2 (1 - Phi(z)) */
    bm_matched_pairs_test(&none, &z, &p);
    assert_true(z == 0 && p == 1);
    bm_matched_pairs_test(&equal, &z, &p);
    assert_true(z == 0 && p == 1);
}

static void test_few_or_equal_differences_are_not_tested(void **state)
{
    static const bm_matched_pairs cases[] = {
        {0, 0, 0},
        {2, 2, 2},                                   /* 1 and 1 */
        {BM_LEAST_SEGMENTS - 1, 4, 4},               /* too few */
        {BM_LEAST_SEGMENTS, -3. * BM_LEAST_SEGMENTS, /* -3 each */
         9. * BM_LEAST_SEGMENTS},
    };

    (void)state;
    FOR_EACH (k, cases) {
        double z = 0, p = 0;

        bm_matched_pairs_test(&cases[k], &z, &p);
        assert_true(isnan(z) && isnan(p));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_paths_are_found),
        cmocka_unit_test(test_no_path_is_better),
        cmocka_unit_test(test_paths_are_those_of_the_whole_table),
        cmocka_unit_test(test_scores_of_labels_are_means_over_their_frames),
        cmocka_unit_test(test_what_cannot_be_aligned_is_told_by_the_score),
        cmocka_unit_test(test_costs_of_sclite_make_other_alignments),
        cmocka_unit_test(test_the_best_alternative_is_aligned),
        cmocka_unit_test(test_long_texts_are_aligned_as_by_the_whole_table),
        cmocka_unit_test(test_two_good_words_end_a_segment),
        cmocka_unit_test(test_z_is_the_mean_over_its_standard_error),
        cmocka_unit_test(test_few_or_equal_differences_are_not_tested),
    };
    return RUN_GROUP("align", tests);
}
