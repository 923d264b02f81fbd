/* What a strategy in a fragment knows of frozen weights and their rates. */
#include "bmuf/strategies/fragments.h"
#include "tests/support/reference/equations.h"
#include "tests/support/support.h"

enum { FRAGMENTS = 3, MOST = 2 };

/* The layer rates of the strategies that were opened. */
static bm_layer_rate seen[FRAGMENTS][MOST];
static size_t n_seen[FRAGMENTS], opened;

bm_status __real_bm_strategy_open(bm_strategy **out, const char *name,
                                  const bm_config *config, bm_comm *comm,
                                  bm_params *params);
bm_status __wrap_bm_strategy_open(bm_strategy **out, const char *name,
                                  const bm_config *config, bm_comm *comm,
                                  bm_params *params);

bm_status __wrap_bm_strategy_open(bm_strategy **out, const char *name,
                                  const bm_config *config, bm_comm *comm,
                                  bm_params *params)
{
    assert_true(opened < FRAGMENTS && params->n_layer_rates <= MOST);
    n_seen[opened] = params->n_layer_rates;
    for (size_t i = 0; i < params->n_layer_rates; i++)
        seen[opened][i] = params->layer_rates[i];
    opened++;
    return __real_bm_strategy_open(out, name, config, comm, params);
}

static void test_a_fragment_has_its_part_of_the_layer_rates(void **state)
{
    static const char *const settings[] = {"block.fragments=3", NULL};
    /* fragments begin at 0, 1024 and 2048 */
    static const bm_layer_rate layer_rates[] = {{1000, 500, 0},
                                                {2000, 100, 0.5}};
    static const bm_layer_rate expected[FRAGMENTS][MOST] = {
        {{1000, 24, 0}}, {{0, 476, 0}, {976, 48, 0.5}}, {{0, 52, 0.5}}};
    static const size_t n_expected[] = {1, 2, 1};
    job j = open_job(*state, even, settings);
    bm_strategy *s = NULL;

    j.params.layer_rates = layer_rates;
    j.params.n_layer_rates = sizeof layer_rates / sizeof *layer_rates;
    assert_ok(bm_fragments_open(&s, "bmuf", j.config, j.comm, &j.params));
    assert_int_equal(opened, FRAGMENTS);
    FOR_EACH (f, expected) {
        assert_int_equal(n_seen[f], n_expected[f]);
        for (size_t i = 0; i < n_seen[f]; i++) {
            assert_int_equal(seen[f][i].offset, expected[f][i].offset);
            assert_int_equal(seen[f][i].count, expected[f][i].count);
            assert_true(seen[f][i].factor == expected[f][i].factor);
        }
    }
    bm_strategy_close(s);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_fragment_has_its_part_of_the_layer_rates, open_comm,
            close_comm),
    };
    return RUN_GROUP_MPI("fragment_layer_rates", tests);
}
