/*
 * The cost models against numbers that others have published or that follow by
 * hand: Baidu's arithmetic of 2017, 18 measured points of the benchmark of HKBU
 * (ddl-benchmarks, 2020-05-29), and rings along a grid of 256 devices.
 */
#include "bmuf/exchange/cost.h"
#include "cli/report/scale/forecast.h"
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

static const bm_link plain = {0, 1e9, 0};

static bool within(double a, double b, double most)
{
    return fabs(a - b) <= most;
}

static void test_single_reducer_is_linear_and_a_ring_is_not(void **_)
{
    const double bytes = 300e6 * 4;

    (void)_;
    assert_true(near(bm_cost_server(bytes, 2, &plain), 1.2, 1e-12));
    assert_true(near(bm_cost_server(bytes, 10, &plain), 10.8, 1e-12));
    assert_true(near(bm_cost_ring(bytes, 2, &plain), 1.2, 1e-12));
    assert_true(near(bm_cost_ring(bytes, 10, &plain), 2.16, 1e-12));
}

static double sum_of(const char *name, double bytes, int n, const bm_fabric *f)
{
    const bm_sum_cost *c = bm_sum_cost_find(name);

    assert_non_null(c);
    return c->seconds(bytes, n, f);
}

/* By hand: 4 ranks, 8 bytes, a = 1 s, 1 B/s, c = 1 s/B. */
static void test_models_of_allreduce_by_hand(void **_)
{
    const bm_link l = {1, 1, 1};
    const bm_fabric f = bm_fabric_flat(l);

    (void)_;
    assert_true(near(bm_cost_ring(8, 4, &l), 6 + 12 + 6, 1e-12));
    assert_true(near(sum_of("halving", 8, 4, &f), 4 + 12 + 6, 1e-12));
    assert_true(near(sum_of("halving", 8, 8, &f), 6 + 14 + 7, 1e-12));
    assert_true(near(bm_cost_server(8, 4, &l), 3 * (1 + 8), 1e-12));
    assert_true(near(bm_fabric_servers(8, 4, &f), 6 + 12 + 6, 1e-12));
    /* 5: one step more at both ends for the fifth */
    assert_true(
        near(sum_of("halving", 8, 5, &f), 4 + 12 + 6 + 2 * (1 + 8) + 8, 1e-12));
}

static void test_one_worker_exchanges_nothing(void **_)
{
    const bm_link l = {1, 1, 1};
    const bm_fabric f = bm_fabric_flat(l);

    (void)_;
    assert_true(bm_cost_ring(8, 1, &l) == 0);
    assert_true(sum_of("halving", 8, 1, &f) == 0);
    assert_true(bm_cost_server(8, 1, &l) == 0);
    assert_true(bm_fabric_servers(8, 1, &f) == 0);
    assert_true(bm_cost_slowest(1) == 0);
}

/* 4 devices by NVLink, 8 hosts in each of two dimensions of 22 GB/s, against
 * one ring over all: latency shrinks, bytes do not. */
static void test_grid_of_rings_saves_latency_not_bytes(void **_)
{
    const int size[] = {4, 8, 8};
    const bm_link flat = {10e-6, 22e9, 0};
    const bm_link along[] = {
        {5e-6, 30e9, 0}, {10e-6, 5.5e9, 0}, {10e-6, 5.5e9, 0}};
    const double want[][3] = {/* bytes, one ring, grid: ms */
                              {1e3, 5.10, 0.31},
                              {1e5, 5.11, 0.32},
                              {1e6, 5.19, 0.45},
                              {102.2e6, 14.4, 14.6}};

    (void)_;
    for (size_t i = 0; i < 4; i++) {
        double ring = 1e3 * bm_cost_ring(want[i][0], 256, &flat);
        double grid = 1e3 * bm_cost_grid(want[i][0], 3, size, along);

        assert_true(within(ring, want[i][1], i < 3 ? 0.005 : 0.05));
        assert_true(within(grid, want[i][2], i < 3 ? 0.005 : 0.05));
    }
    assert_true(near(bm_cost_grid(1e6, 1, size, &flat),
                     bm_cost_ring(1e6, 4, &flat), 1e-12));
}

/* The same 256 devices, 4 of a host that share 22 GB/s: the links follow. */
static void test_the_links_of_a_grid_follow_from_two_levels(void **_)
{
    bm_fabric f = {
        .between = {10e-6, 22e9, 0}, .inside = {5e-6, 30e9, 0}, .host = 4};

    (void)_;
    assert_ok(bm_fabric_topology(&f, "4x8x8"));
    assert_true(within(1e3 * sum_of("hier", 1e3, 256, &f), 0.31, 0.005));
    assert_true(within(1e3 * sum_of("hier", 1e6, 256, &f), 0.45, 0.005));
    assert_true(within(1e3 * sum_of("ring", 102.2e6, 256, &f), 14.4, 0.05));
}

/* On one level the formulas of Thakur et al.; a ring and slices at all workers
 * send the same bytes in as many messages. */
static void test_sums_on_one_level_are_the_models_above(void **_)
{
    const bm_link l = {1, 1, 1};
    const bm_fabric f = bm_fabric_flat(l);

    (void)_;
    for (int n = 1; n <= 9; n++) {
        assert_true(
            near(sum_of("ring", 8, n, &f), bm_cost_ring(8, n, &l), 1e-12));
        assert_true(
            near(sum_of("tree", 8, n, &f), bm_cost_ring(8, n, &l), 1e-12));
        assert_true(
            near(bm_fabric_servers(8, n, &f), bm_cost_ring(8, n, &l), 1e-12));
        assert_true(
            near(bm_fabric_server(8, n, &f), bm_cost_server(8, n, &l), 1e-12));
    }
}

/* 2 hosts with 2 workers each, 8 bytes; inside 1 s and 1 B/s, between 10 s and
 * 0.1 B/s for a host; adding takes no time. */
static void test_sums_on_two_levels_by_hand(void **_)
{
    const bm_fabric f = {
        .between = {10, 0.1, 0}, .inside = {1, 1, 0}, .host = 2};
    const bm_fabric one = {
        .between = {10, 0.1, 0}, .inside = {1, 1, 0}, .host = 8};

    (void)_;
    /* 6 steps of 2 bytes across; one worker of a host sends to the other */
    assert_true(near(sum_of("ring", 8, 4, &f), 6 * (10 + 20), 1e-12));
    /* 2 steps of 4 bytes inside, then 2 of 2 bytes by both workers at once */
    assert_true(
        near(sum_of("hier", 8, 4, &f), 2 * (1 + 4) + 2 * (10 + 40), 1e-12));
    assert_true(
        near(sum_of("halving", 8, 4, &f), 2 * (1 + 4) + 2 * (10 + 40), 1e-12));
    /* slices of 2 bytes: 1 inside, 2 to the other host by both workers; then
     * each owner once to the other host, and one signal inside */
    assert_true(near(sum_of("tree", 8, 4, &f),
                     (1 + 2) + 2 * (10 + 40) + (10 + 40) + 1, 1e-12));
    assert_true(near(sum_of("exact", 8, 4, &f),
                     (1 + 8) + 2 * (10 + 160) + (10 + 40) + 1, 1e-12));
    assert_true(
        near(sum_of("mpi", 8, 4, &f), 6 * (10 + 20) + (10 + 40) + 1, 1e-12));
    assert_true(
        near(bm_fabric_server(8, 4, &f), (1 + 8) + 2 * (10 + 80), 1e-12));
    assert_true(near(bm_fabric_servers(8, 4, &f), 2 * ((1 + 2) + 2 * (10 + 40)),
                     1e-12));
    /* four workers of one host never cross */
    assert_true(near(sum_of("ring", 8, 4, &one), 6 * (1 + 2), 1e-12));
    assert_true(near(sum_of("hier", 8, 4, &one), 6 * (1 + 2), 1e-12));
}

/* 2 hosts of 2 workers, a slice of four lanes. Inside, 2 steps of half of B bytes
 * take B s at 1 B/s, and so do 2 steps of a quarter at 0.5 B/s between hosts. A
 * lane takes a quarter of both; the other three follow at the pace of one. */
static void test_rings_of_two_dimensions_overlap_in_lanes(void **_)
{
    const double bytes = 4.0 * 4 * 4 * (1 << 15);
    const bm_fabric f = {.between = {0, 1, 0}, .inside = {0, 1, 0}, .host = 2};
    bm_grid g = bm_fabric_grid(&f, 4);
    double inside = bytes, between = bytes;

    (void)_;
    assert_int_equal(g.dimensions, 2);
    assert_int_equal(bm_grid_lanes(&g, (size_t)(bytes / 4)), 4);
    assert_true(near(sum_of("hier", bytes, 4, &f),
                     (inside + between) / 4 + 3 * between / 4, 1e-9));
}

static void test_topologies_fit_to_any_number_of_workers(void **_)
{
    static const struct {
        int n, dimensions, size[3];
    } rows[] = {{256, 3, {4, 8, 8}}, {512, 3, {4, 8, 16}}, {32, 3, {4, 8, 1}},
                {8, 3, {4, 2, 1}},   {2, 3, {2, 1, 1}},    {6, 1, {6}}};
    bm_fabric f = bm_fabric_flat(plain);

    (void)_;
    assert_ok(bm_fabric_topology(&f, "4x8x8"));
    FOR_EACH (i, rows) {
        bm_grid g = bm_fabric_grid(&f, rows[i].n);

        assert_int_equal(g.dimensions, rows[i].dimensions);
        for (int k = 0; k < g.dimensions; k++)
            assert_int_equal(g.size[k], rows[i].size[k]);
    }
    assert_int_equal(bm_fabric_topology(&f, "4x"), BM_ERR_ARG);
    assert_int_equal(bm_fabric_topology(&f, ""), BM_ERR_ARG);
    assert_int_equal(bm_fabric_topology(&f, "4x0"), BM_ERR_ARG);
    assert_int_equal(bm_fabric_topology(&f, "1048576x1048576"), BM_ERR_ARG);
}

/* One column of 2048 weights: two floats and 64 words for 8192 bytes. */
static void test_onebit_sends_a_thirty_first_of_the_bytes(void **_)
{
    (void)_;
    assert_true(near(bm_cost_onebit_bytes(2048, 2048), 264, 1e-12));
    assert_true(within(8192 / bm_cost_onebit_bytes(2048, 2048), 31, 0.05));
    assert_true(near(bm_cost_onebit_bytes(33, 33), 8 + 8, 1e-12));
}

static void test_expected_largest_of_normal_numbers(void **_)
{
    static const struct {
        int n;
        double e;
    } known[] = {{2, 0.5641896}, /* 1 / sqrt(pi) */
                 {3, 0.8462844}, /* 3 / (2 sqrt(pi)) */
                 {4, 1.0293754}, {16, 1.7659914}, {64, 2.344}, {256, 2.827}};

    (void)_;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(
            near(bm_cost_slowest(known[i].n), known[i].e, i < 4 ? 1e-6 : 1e-3));
}

/* Rings between workers of which each has a host of its own. */
static bm_exchange_cost rings(bm_link link)
{
    return (bm_exchange_cost){bm_sum_cost_find("ring"), bm_fabric_flat(link)};
}

static const bm_forecast_method *method(const char *name)
{
    const bm_forecast_method *m = bm_forecast_methods;

    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    assert_non_null(m->name);
    return m;
}

/* A step without overlap is the step alone and a ring; the slower of bus and
 * network carries it. The bus is known from the 4 GPUs of one host. */
static void test_published_points_of_synchronous_training(void **_)
{
    static const struct {
        double batch, rate, bytes, four, net[2][3]; /* samples/s: 8, 16, 32 */
        double within;
    } models[] = {{64,
                   253.1,
                   25.557e6 * 4,
                   920.28,
                   {{1282.28, 2485.12, 4920.82}, {1821.20, 3602.90, 7126.52}},
                   0.017},
                  {64,
                   212.8,
                   110e6 * 4,
                   555.70,
                   {{518.94, 984.88, 1926.64}, {1082.42, 2112.96, 4184.38}},
                   0.075},
                  {8,
                   49.0,
                   336e6 * 4,
                   53.08,
                   {{28.96, 54.30, 105.10}, {99.18, 191.64, 375.22}},
                   0.075}};
    static const double network[] = {0.94 * 1.25e9, 11e9};
    static const int devices[] = {8, 16, 32};

    (void)_;
    for (size_t m = 0; m < 3; m++) {
        double alone = models[m].batch / models[m].rate;
        double bus = 1.5 * models[m].bytes /
                     (4 * models[m].batch / models[m].four - alone);
        bm_load load = {.weights = models[m].bytes / 4, .step_s = alone};

        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; i < 3; i++) {
                bm_exchange_cost l =
                    rings((bm_link){25e-6, fmin(bus, network[k]), 0});
                double published =
                    models[m].batch * devices[i] / models[m].net[k][i];
                double step =
                    bm_forecast_step(method("ssgd"), &load, &l, devices[i]);

                assert_true(fabs(step / published - 1) < models[m].within);
            }
    }
}

/* Frames per second of n workers, relative to one worker alone. */
static double speedup_by(const bm_forecast_method *m, const bm_load *load,
                         const bm_exchange_cost *x, int n)
{
    double alone = fmax(load->step_s, load->read_s);

    return n * alone / bm_forecast_step(m, load, x, n);
}

static double speedup(const char *name, double frames, const bm_link *l, int n)
{
    const double t = 1024 / 8100.;
    bm_load load = {.weights = 46e6,
                    .step_s = t,
                    .backward_s = t * 2 / 3,
                    .variation = 0.05,
                    .block_steps = frames / 1024,
                    .layers = 8,
                    .quantise_rate = 5e9};
    bm_exchange_cost x = rings(*l);

    return speedup_by(method(name), &load, &x, n);
}

/*
 * CNTK's documentation: an LSTM with block momentum, blocks of 120,000 frames a
 * worker, the best block of each run. The network is not published: 30 million
 * weights, 10,000 frames a second and 10GbE are assumed, which are worth less than
 * 2 %. What the points need is that a worker's time for a block varies by 7 %.
 */
static void test_published_points_of_block_momentum(void **_)
{
    static const struct {
        int workers;
        double best;
    } points[] = {{16, 14.11}, {32, 27.27}, {64, 54.00}};
    const bm_exchange_cost l = rings((bm_link){30e-6, 1.17e9, 0});
    bm_load load = {
        .weights = 30e6, .step_s = 0.12, .block_steps = 100, .variation = 0};

    (void)_;
    for (size_t i = 0; i < 3; i++) {
        int n = points[i].workers;

        load.variation = 0;
        assert_true(speedup_by(method("bmuf"), &load, &l, n) > 0.98 * n);
        load.variation = 0.071 * sqrt(load.block_steps);
        assert_true(
            fabs(speedup_by(method("bmuf"), &load, &l, n) / points[i].best -
                 1) < 0.01);
    }
}

/* The same model, written down and computed apart from this one: 46 M weights,
 * 8100 frames/s, mini-batches of 1024, 5 % variation, 8 layers. */
static void test_speedups_computed_elsewhere(void **_)
{
    const bm_link gbe10 = {30e-6, 1.17e9, 0}, fdr = {3e-6, 5.8e9, 0};

    (void)_;
    assert_true(within(speedup("ssgd", 0, &gbe10, 64), 17.8, 0.06));
    assert_true(within(speedup("overlap", 0, &gbe10, 64), 19.9, 0.06));
    assert_true(within(speedup("onebit", 0, &gbe10, 64), 46.7, 0.06));
    assert_true(within(speedup("bmuf", 120000 / 64., &gbe10, 64), 26.2, 0.06));
    assert_true(within(speedup("bmuf", 30000, &gbe10, 64), 57.9, 0.06));
    assert_true(within(speedup("bmuf", 120000, &gbe10, 64), 62.0, 0.06));
    assert_true(within(speedup("ssgd", 0, &fdr, 256), 155, 0.5));
    assert_true(within(speedup("bmuf", 30000, &fdr, 256), 245, 0.5));
}

/* A ring of two moves 4 MB in 4 ms; a block has ten steps of 0.1 ms. */
static void test_variants_by_hand(void **_)
{
    const bm_exchange_cost link = rings((bm_link){.bandwidth = 1e9});
    const bm_load load = {.weights = 1e6, .step_s = 1e-4, .block_steps = 10};
    static const struct {
        const char *name;
        double step;
    } rows[] = {{"bmuf", 1e-4 + 4e-4},     {"late", 4e-4},
                {"asgd1", 1e-4 + 8e-3},    {"asgd", 1e-4 + 4e-3},
                {"softsync", 1e-4 + 4e-3}, {"easgd", 1e-4 + 1e-3}};
    bm_load slow = load;

    (void)_;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(
            near(bm_forecast_step(method(rows[i].name), &load, &link, 2),
                 rows[i].step, 1e-12));
    /* a worker's own 8 ms count, until those of all others are more */
    slow.step_s = 20e-3;
    assert_true(
        near(bm_forecast_step(method("asgd1"), &slow, &link, 4), 28e-3, 1e-12));
    assert_true(
        near(bm_forecast_step(method("asgd1"), &slow, &link, 8), 56e-3, 1e-12));
    slow.step_s = 1e-3; /* the exchange is completely hidden */
    assert_true(
        near(bm_forecast_step(method("late"), &slow, &link, 2), 1e-3, 1e-12));
    slow.variation = 0.5;
    assert_true(near(bm_forecast_step(method("softsync"), &slow, &link, 8) -
                         bm_forecast_step(method("asgd"), &slow, &link, 8),
                     5e-4 * bm_cost_slowest(2), 1e-12));
}

/* By hand: two layers, backward 1 s each; 3 s of transfer follow the first
 * layer's second at 1, so the second one sets off at 4. */
static double three_seconds(void *self, double bytes)
{
    (void)self;
    return 3 * bytes;
}

static void test_overlap_by_hand(void **_)
{
    const double backward[] = {1, 1}, bytes[] = {1, 1}, none[] = {0, 0};

    (void)_;
    assert_true(near(bm_cost_bucketed(2, backward, bytes, three_seconds, NULL),
                     7, 1e-12));
    assert_true(near(bm_cost_bucketed(2, backward, none, three_seconds, NULL),
                     2, 1e-12));
}

typedef struct line {
    double a, b;
} line;

static double along(void *self, double bytes)
{
    const line *l = self;
    return l->a + l->b * bytes;
}

/* Ten equal layers form one bucket if latency is high, and ten if it is 0;
 * merging is never slower. */
static void test_merging_layers(void **_)
{
    double backward[10], bytes[10];
    int bucket[10];
    static const struct {
        line cost;
        int buckets;
    } cases[] = {{{10e-3, 1e-12}, 1}, {{1e-9, 1e-12}, 10}};

    (void)_;
    for (int k = 0; k < 10; k++) {
        backward[k] = 1e-3;
        bytes[k] = 1e6;
    }
    for (size_t i = 0; i < 2; i++) {
        line l = cases[i].cost;
        double t = bm_cost_merge(10, backward, bytes, l.a, l.b, bucket);

        assert_true(t <=
                    bm_cost_bucketed(10, backward, bytes, along, &l) + 1e-12);
        assert_int_equal(bucket[0], 0);
        assert_int_equal(bucket[9] + 1, cases[i].buckets);
    }
}

static void test_slow_reading_limits_all_methods(void **_)
{
    bm_load load = {.weights = 1, .step_s = 1, .read_s = 4, .block_steps = 1};
    bm_exchange_cost x = rings(plain);

    (void)_;
    assert_true(near(bm_forecast_step(method("bmuf"), &load, &x, 8), 4, 1e-12));
    assert_true(near(speedup_by(method("bmuf"), &load, &x, 8), 8, 1e-12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_reducer_is_linear_and_a_ring_is_not),
        cmocka_unit_test(test_models_of_allreduce_by_hand),
        cmocka_unit_test(test_one_worker_exchanges_nothing),
        cmocka_unit_test(test_grid_of_rings_saves_latency_not_bytes),
        cmocka_unit_test(test_the_links_of_a_grid_follow_from_two_levels),
        cmocka_unit_test(test_sums_on_one_level_are_the_models_above),
        cmocka_unit_test(test_sums_on_two_levels_by_hand),
        cmocka_unit_test(test_rings_of_two_dimensions_overlap_in_lanes),
        cmocka_unit_test(test_topologies_fit_to_any_number_of_workers),
        cmocka_unit_test(test_onebit_sends_a_thirty_first_of_the_bytes),
        cmocka_unit_test(test_expected_largest_of_normal_numbers),
        cmocka_unit_test(test_published_points_of_synchronous_training),
        cmocka_unit_test(test_published_points_of_block_momentum),
        cmocka_unit_test(test_speedups_computed_elsewhere),
        cmocka_unit_test(test_variants_by_hand),
        cmocka_unit_test(test_overlap_by_hand),
        cmocka_unit_test(test_merging_layers),
        cmocka_unit_test(test_slow_reading_limits_all_methods),
    };
    return RUN_GROUP("cost", tests);
}
