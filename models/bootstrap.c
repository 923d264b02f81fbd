/* bootstrap.c - percentiles of the rates of random draws. */
#include "models/bootstrap.h"

#include "core/rng.h"
#include "core/sort.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static double rate_of(bm_error_count sum)
{
    return sum.total > 0 ? sum.errors / sum.total : NAN;
}

static bm_error_count add(bm_error_count sum, bm_error_count more)
{
    return (bm_error_count){sum.errors + more.errors, sum.total + more.total};
}

/* group [groups] <- sums over neighbours, whose numbers differ by one at most */
static void pool(const bm_error_count *count, size_t n, bm_error_count *group,
                 size_t groups)
{
    size_t i = 0;

    for (size_t g = 0; g < groups; g++) {
        group[g] = (bm_error_count){0};
        for (; i < (g + 1) * n / groups; i++)
            group[g] = add(group[g], count[i]);
    }
}

/* Number k of the draw is floor(n u) for u = the upper half of its bits. */
static bm_error_count draw(const bm_error_count *group, size_t n, uint64_t key)
{
    bm_error_count sum = {0};

    for (size_t k = 0; k < n; k++)
        sum = add(sum, group[((bm_rng_at(key, k) >> 32) * n) >> 32]);
    return sum;
}

/* Of sorted numbers, linear between neighbours. */
static double quantile(const double *x, size_t n, double p)
{
    double at = p * ((double)n - 1);
    size_t k = (size_t)at;

    return k + 1 < n ? x[k] + (at - (double)k) * (x[k + 1] - x[k]) : x[n - 1];
}

static double share_below(const double *x, size_t n)
{
    double below = 0;

    for (size_t i = 0; i < n; i++)
        below += x[i] < 0 ? 1 : x[i] == 0 ? 0.5 : 0;
    return below / (double)n;
}

static void draw_all(const bm_error_count *group, size_t groups, double *rates,
                     bm_interval *out)
{
    bm_rng rng = bm_rng_make(0, "bootstrap", 0);
    size_t n = 0;

    for (uint64_t d = 0; d < BM_DRAWS; d++) {
        double rate = rate_of(draw(group, groups, bm_rng_fork(rng.key, d)));

        if (!isnan(rate)) /* else it has no label */
            rates[n++] = rate;
    }
    if (n == 0)
        return;
    bm_sort(rates, n);
    out->low = quantile(rates, n, 0.025);
    out->high = quantile(rates, n, 0.975);
    out->below = share_below(rates, n);
}

/* Are there two sequences to draw from that have something to count? */
static bool has_two(const bm_error_count *count, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < n && found < 2; i++)
        found += count[i].total > 0 || count[i].errors != 0;
    return found == 2;
}

bm_status bm_bootstrap(const bm_error_count *count, size_t n, bm_interval *out)
{
    size_t groups = n < BM_DRAWN_GROUPS ? n : BM_DRAWN_GROUPS;
    bm_error_count *group = calloc(groups + 1, sizeof *group), all = {0};
    double *rates = malloc(BM_DRAWS * sizeof *rates);
    bm_interval got = {NAN, NAN, NAN, NAN};
    bm_status status = BM_OK;

    if (group == NULL || rates == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an interval");
    for (size_t i = 0; i < n; i++)
        all = add(all, count[i]);
    got.rate = rate_of(all);
    pool(count, n, group, groups);
    if (!isnan(got.rate) && has_two(count, n))
        draw_all(group, groups, rates, &got);
    *out = got;
done:
    free(group);
    free(rates);
    return status;
}

bm_status bm_bootstrap_difference(const bm_error_count *a,
                                  const bm_error_count *b, size_t n,
                                  bm_interval *out)
{
    bm_error_count *both = malloc((n + 1) * sizeof *both);
    bm_status status = BM_OK;

    if (both == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare %zu sequences", n);
    for (size_t i = 0; i < n; i++) {
        BM_ASSERT(a[i].total == b[i].total);
        both[i] = (bm_error_count){b[i].errors - a[i].errors, a[i].total};
    }
    status = bm_bootstrap(both, n, out);
    free(both);
    return status;
}
