/*
 * onebit.c - 1-bit SGD (Seide et al. 2014): synchronous SGD whose gradients
 * travel as one bit a weight, on both ways, with error feedback on both.
 *
 *     worker k    y = g_k + A_k    y^ = one bit a weight    A_k <- y - y^
 *     owner       z = mean y^ + B  z^ = one bit a weight    B <- z - z^
 *     all         w <- local update(w, z^)
 *
 * It begins with blocks of ssgd itself: one bit is too coarse for the gradients
 * of a model that knows nothing.
 */
#include "bmuf/strategy.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *bits;
    long warmup;
} settings;

static const bm_option options[] = {
    {"bits", BM_CHOICE, offsetof(settings, bits), "1", 0, 0, "1 32",
     "of a weight's gradient as it travels; 32: all, which is ssgd"},
    {"warmup", BM_INT, offsetof(settings, warmup), "10", 0, 1e6, "blocks",
     "how many begin with ssgd"},
    {0},
};

static bm_code code(const void *of)
{
    const settings *set = of;
    return bm_code_find(strcmp(set->bits, "1") == 0 ? "onebit" : "fp32", 0);
}

static bm_status onebit_open(bm_strategy *s)
{
    s->self = calloc(1, sizeof(float)); /* blocks of warm-up that have begun */
    if (s->self == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a count");
    return BM_OK;
}

static void onebit_close(bm_strategy *s)
{
    free(s->self);
}

static void block(bm_strategy *s)
{
    const settings *set = s->settings;
    float *begun = s->self;
    bool warm = *begun < (float)set->warmup;

    *begun += warm;
    bm_exchange_plain(s->exchange, warm);
}

static bm_status exchange(bm_strategy *s)
{
    const bm_rule rule = {.kind = BM_TAKE};

    BM_TRY(bm_exchange_update(s->exchange, &rule, &s->update.weight));
    bm_exchange_fetch(s->exchange, s->params->g);
    return BM_OK;
}

static size_t state(bm_strategy *s, bm_state *out)
{
    bm_params *p = s->params;

    out[0] = (bm_state){"model", p->be, p->w, 0, p->n, 0};
    out[1] = (bm_state){"onebit.warm", NULL, s->self, 0, 1, 1};
    return 2;
}

const bm_strategy_ops bm_strategy_onebit = {
    .name = "onebit",
    .help = "1-bit SGD (Seide et al. 2014): gradients of one bit a weight at "
            "every step",
    .unit = BM_STEP,
    .options = options,
    .settings_size = sizeof(settings),
    .code = code,
    .open = onebit_open,
    .close = onebit_close,
    .block = block,
    .exchange = exchange,
    .state = state,
};
