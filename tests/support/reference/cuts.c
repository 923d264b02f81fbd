/* cuts.c - see cuts.h. */
#include "tests/support/reference/cuts.h"

#include "comm/sum/sum.h"
#include "tests/support/support.h"

#include <string.h>

enum { CHUNK = BM_SUM_CHUNK };

/* The entry of params->ranges with element i; statistics come with the last. */
static size_t part_of(const bm_params *p, size_t i)
{
    for (size_t k = 0; k < p->n_ranges; k++)
        if (i >= p->ranges[k].offset &&
            i < p->ranges[k].offset + p->ranges[k].count)
            return k;
    return p->n_ranges - 1;
}

void check_cut(const bm_params *p, size_t n, const bm_bucket *b)
{
    static int seen[64 * CHUNK];

    memset(seen, 0, sizeof seen);
    for (size_t k = 0; k < n; k++) {
        size_t last = 0;

        assert_true(b[k].offset % CHUNK == 0 && b[k].n > 0);
        for (size_t i = b[k].offset; i < b[k].offset + b[k].n; i++) {
            last = part_of(p, i) > last ? part_of(p, i) : last;
            seen[i]++;
        }
        assert_int_equal(b[k].range, last);
        assert_true(k == 0 || b[k].range >= b[k - 1].range);
    }
    for (size_t i = 0; i < p->n; i++)
        assert_int_equal(seen[i], 1);
}
