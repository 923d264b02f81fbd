/*
 * The schedule of rings along a grid, simulated by members that track, for each
 * element, whose vectors are in its sum: no vector is added twice or lost, every
 * send matches a receive, and the bytes sent follow the formulas.
 */
#include "comm/grid.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 17, LONGEST = 1021 };

typedef struct play {
    bm_grid grid;
    size_t n;
    size_t edge[MOST + 1];
    uint32_t has[MOST][LONGEST]; /* bit k: member k's share is in it */
    size_t sent[MOST], messages[MOST];
} play;

/* The first (n mod slices) slices are longer by one. */
static void deal(play *p)
{
    size_t slices = (size_t)bm_grid_slices(&p->grid);

    for (size_t k = 0; k <= slices; k++)
        p->edge[k] =
            k * (p->n / slices) + (k < p->n % slices ? k : p->n % slices);
    assert_int_equal(p->edge[slices], p->n);
}

static bool holds(bm_slices p, int slice)
{
    return slice >= p.first && (slice - p.first) % p.step == 0;
}

typedef bm_turn half(const bm_grid *g, int member, int t);

/* All members send what they had before the turn. */
static void take_turn(play *p, half *turn, int t, bool adds)
{
    static uint32_t had[MOST][LONGEST];

    memcpy(had, p->has, sizeof had);
    for (int m = 0; m < p->grid.members; m++) {
        bm_turn mine = turn(&p->grid, m, t);

        if (mine.to >= 0) {
            bm_turn its = turn(&p->grid, mine.to, t);

            assert_int_equal(its.from, m);
            assert_int_equal(its.in.first, mine.out.first);
            assert_int_equal(its.in.step, mine.out.step);
            p->sent[m] += bm_grid_count(&p->grid, p->edge, mine.out);
            p->messages[m]++;
        }
        for (int k = 0; mine.from >= 0 && k < bm_grid_slices(&p->grid); k++)
            for (size_t i = p->edge[k]; holds(mine.in, k) && i < p->edge[k + 1];
                 i++) {
                if (adds)
                    assert_int_equal(p->has[m][i] & had[mine.from][i], 0);
                p->has[m][i] = had[mine.from][i] | (adds ? p->has[m][i] : 0);
            }
    }
}

static void play_it(play *p)
{
    const uint32_t all = (1u << p->grid.members) - 1;
    int turns = bm_grid_turns(&p->grid);

    deal(p);
    for (int m = 0; m < p->grid.members; m++) {
        p->sent[m] = p->messages[m] = 0;
        for (size_t i = 0; i < p->n; i++)
            p->has[m][i] = 1u << m;
    }
    for (int t = 0; t < turns; t++)
        take_turn(p, bm_grid_scatter, t, true);
    for (int k = 0; k < bm_grid_slices(&p->grid); k++)
        for (size_t i = p->edge[k]; i < p->edge[k + 1]; i++)
            assert_int_equal(p->has[bm_grid_owner(&p->grid, k)][i], all);
    for (int t = 0; t < turns; t++)
        take_turn(p, bm_grid_gather, t, false);
    for (int m = 0; m < p->grid.members; m++)
        for (size_t i = 0; i < p->n; i++)
            assert_int_equal(p->has[m][i], all);
}

/* For any schedule: each vector is added once and each sum received once. */
static void assert_total(const play *p)
{
    size_t total = 0;

    for (int m = 0; m < p->grid.members; m++)
        total += p->sent[m];
    assert_int_equal(total, 2 * (size_t)(p->grid.members - 1) * p->n);
}

static void for_each_size(int members, void check(play *p, int members))
{
    static play p;
    size_t n = (size_t)members;
    const size_t sizes[] = {0, 1, n - 1, n, n + 1, 16 * n, 16 * n + 5, LONGEST};

    FOR_EACH (i, sizes) {
        p.n = sizes[i];
        check(&p, members);
    }
}

/* Baidu's: 2 n - c[r + 1] - c[r + 2], whose chunk r + 1 is slice r. */
static void check_ring(play *p, int members)
{
    p->grid = bm_grid_ring(members);
    play_it(p);
    assert_total(p);
    for (int m = 0; m < members; m++) {
        int next = (m + 1) % members;
        size_t own = p->edge[m + 1] - p->edge[m];
        size_t its = p->edge[next + 1] - p->edge[next];

        assert_int_equal(p->sent[m], members == 1 ? 0 : 2 * p->n - own - its);
        assert_int_equal(p->messages[m], 2 * (members - 1));
    }
}

static void test_a_ring_sends_as_in_the_textbook(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++)
        for_each_size(members, check_ring);
}

/* With p = 2^floor(log2 N): 2 (p - 1) / p of all, and all where one folds. */
static void check_halving(play *p, int members)
{
    size_t halves = 0, slices = 1, folded = 0;

    for (; 2 * slices <= (size_t)members; slices *= 2)
        halves++;
    folded = (size_t)members - slices;
    p->grid = bm_grid_halving(members);
    assert_int_equal(bm_grid_slices(&p->grid), slices);
    play_it(p);
    assert_total(p);
    for (size_t m = 0; m < (size_t)members; m++) {
        bool pairs = m < 2 * folded, folds = pairs && m % 2 == 1;

        assert_int_equal(p->messages[m], folds ? 1 : 2 * halves + pairs);
        if (folds)
            assert_int_equal(p->sent[m], p->n);
        else if (p->n % slices == 0)
            assert_int_equal(p->sent[m], 2 * (slices - 1) * (p->n / slices) +
                                             (pairs ? p->n : 0));
    }
}

static void test_halving_sends_as_in_the_textbook(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++)
        for_each_size(members, check_halving);
}

/* 2 (N - 1) / N of all in 2 sum (p_k - 1) messages, whatever the sizes p_k. */
static void check_topology(play *p, int members, int a, int b)
{
    int c = members / a / b;
    size_t messages = 2 * ((size_t)(a - 1) + (size_t)(b - 1) + (size_t)(c - 1));
    char text[64];

    snprintf(text, sizeof text, "%dx%dx%d", a, b, c);
    assert_ok(bm_grid_read(text, members, &p->grid));
    play_it(p);
    assert_total(p);
    for (int m = 0; m < members; m++) {
        assert_int_equal(p->messages[m], messages);
        if (p->n % (size_t)members == 0)
            assert_int_equal(p->sent[m], 2 * (size_t)(members - 1) *
                                             (p->n / (size_t)members));
    }
}

static void check_topologies(play *p, int members)
{
    for (int a = 1; a <= members; a++)
        for (int b = 1; members % a == 0 && b <= members / a; b++)
            if (members / a % b == 0)
                check_topology(p, members, a, b);
}

static void test_grids_send_what_one_ring_sends_in_fewer_messages(void **state)
{
    (void)state;
    for (int members = 1; members <= MOST; members++)
        for_each_size(members, check_topologies);
}

/* Adds weights as vectors are added. */
static void check_weights(const bm_grid *g)
{
    double before[MOST + 1] = {0}, slice[MOST][MOST] = {0}, had[MOST][MOST];

    for (int m = 0; m < g->members; m++) {
        double weight = m % 3 == 1 ? 0 : 100 + 7 * m * m;

        before[m + 1] = before[m] + weight;
        for (int k = 0; k < bm_grid_slices(g); k++)
            slice[m][k] = weight;
    }
    for (int t = 0; t < bm_grid_turns(g); t++) {
        memcpy(had, slice, sizeof had);
        for (int m = 0; m < g->members; m++) {
            bm_turn turn = bm_grid_scatter(g, m, t);
            double own = -1, coming = -1;

            if (turn.from < 0)
                continue;
            bm_grid_weigh(g, before, m, t, &own, &coming);
            for (int k = 0; k < bm_grid_slices(g); k++)
                if (holds(turn.in, k)) {
                    assert_true(own == had[m][k]);
                    assert_true(coming == had[turn.from][k]);
                    slice[m][k] += had[turn.from][k];
                }
        }
    }
}

static void test_weights_are_those_of_the_added_vectors(void **state)
{
    static const char *const text[] = {"3x5", "5x3", "2x2x4", "4x1x3", "2x8"};
    static const int members[] = {15, 15, 16, 12, 16};
    bm_grid g;

    (void)state;
    for (int n = 1; n <= MOST; n++) {
        g = bm_grid_ring(n);
        check_weights(&g);
        g = bm_grid_halving(n);
        check_weights(&g);
    }
    FOR_EACH (i, text) {
        assert_ok(bm_grid_read(text[i], members[i], &g));
        check_weights(&g);
    }
}

static void test_invalid_topologies_are_reported(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"", "not of the form"},
               {"x", "not of the form"},
               {"4x", "not of the form"},
               {"x16", "not of the form"},
               {"4*4", "not of the form"},
               {"4x4x", "not of the form"},
               {"0x16", "not of the form"},
               {"-4x-4", "not of the form"},
               {" 16", "not of the form"},
               {"99999999999999999999", "form"},
               {"4x5", "multiply to"},
               {"2x4", "multiply to 8"},
               {"8x8", "at least 64"},
               {"16x16x16", "at least 256"},
               {"4x4 ", "not of the form"},
               {"15", "multiply to 15"},
               {"1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x16", "dimensions"}};

    (void)state;
    FOR_EACH (i, bad) {
        bm_grid g;

        assert_int_equal(bm_grid_read(bad[i].text, 16, &g), BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), bad[i].message));
    }
}

/* A lane has at least 2^15 floats of each slice; there are eight at most. */
static void test_long_slices_of_several_rings_have_lanes(void **state)
{
    static const struct {
        const char *text;
        size_t slice;
        int lanes;
    } rows[] = {{"2x8", 1 << 15, 1},       {"2x8", 1 << 16, 2},
                {"2x8", (3 << 15) + 9, 3}, {"2x8", 1 << 20, 8},
                {"16", 1 << 20, 1},        {"1x16", 1 << 20, 1},
                {"4x2x2", 1 << 17, 4},     {"2x8", 0, 1}};

    (void)state;
    FOR_EACH (i, rows) {
        bm_grid g;

        assert_ok(bm_grid_read(rows[i].text, 16, &g));
        assert_int_equal(bm_grid_lanes(&g, 16 * rows[i].slice), rows[i].lanes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_sends_as_in_the_textbook),
        cmocka_unit_test(test_halving_sends_as_in_the_textbook),
        cmocka_unit_test(test_grids_send_what_one_ring_sends_in_fewer_messages),
        cmocka_unit_test(test_weights_are_those_of_the_added_vectors),
        cmocka_unit_test(test_invalid_topologies_are_reported),
        cmocka_unit_test(test_long_slices_of_several_rings_have_lanes),
    };
    return RUN_GROUP("grid", tests);
}
