/*
 * consumer.c - somebody else's program that uses the installed library: two
 * workers' updates, 1 (one sample) and 4 (two samples), meet in the mean 3, and
 * the filter makes 0.5 * 1 + 3 of it.
 */
#include "bmuf/filter.h"
#include "comm/sum/sum.h"

#include <stdio.h>

static bm_status mean_of_two(bm_comm *comm, float *out)
{
    bm_sum *sum = NULL;
    bm_slice slice;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_sum_open(&sum, comm, 1, 2, "tree", "sharded", NULL));
    bm_sum_add(sum, 0, &(float){1}, 1);
    bm_sum_add(sum, 1, &(float){4}, 2);
    BM_TRY_DONE(bm_sum_scatter(sum, &slice));
    BM_TRY_DONE(bm_sum_gather(sum, out));
done:
    bm_sum_close(sum);
    return status;
}

int main(void)
{
    const bm_filter filter = {.momentum = 0.5, .rate = 1};
    bm_comm *comm = NULL;
    float x = 0, model = 0, delta = 1;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_comm_open(&comm));
    BM_TRY_DONE(mean_of_two(comm, &x));
    bm_filter_block(&filter, 1, &x, &model, &delta, &x);
    printf("%g\n", (double)model);
done:
    bm_comm_close(comm);
    if (status != BM_OK)
        fprintf(stderr, "%s\n", bm_last_error());
    return bm_status_exit(status);
}
