/*
 * time_network.c - how fast a model's network goes forward on one core:
 *
 *     bmuf_time_network MODEL FRAMES SEQUENCES SECONDS
 *
 * prints the CPU seconds for a million frames, of mini-batches of the given
 * number of sequences of random features. tools/compare_speed compares it with
 * onnxruntime.
 */
#include "core/rng.h"
#include "recognise/recogniser.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A mini-batch [frames, sequences, features] of whole sequences. */
static bm_status fill(bm_backend *be, size_t features, size_t frames,
                      size_t sequences, bm_batch *b, int32_t *lengths)
{
    size_t n = frames * sequences * features;
    bm_rng rng = bm_rng_make(1, "features", 0);
    float *x = NULL;

    BM_TRY(bm_alloc(be, n, &x));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
    for (size_t i = 0; i < sequences; i++)
        lengths[i] = (int32_t)frames;
    b->extent = (bm_extent){frames, sequences, lengths};
    b->x = (bm_tensor){x, 3, {frames, sequences, features, 1}};
    return BM_OK;
}

/* The best of passes in `seconds`, after a first one that is not
 * counted. */
static bm_status run(bm_recogniser *r, const bm_batch *b, double seconds,
                     double *best)
{
    double begin = 0;

    *best = 1e9;
    bm_model_forward(r->model, b);
    BM_TRY(bm_sync(r->be));
    begin = cpu_seconds();
    for (double from = begin, to = 0; from - begin < seconds; from = to) {
        bm_model_forward(r->model, b);
        BM_TRY(bm_sync(r->be));
        to = cpu_seconds();
        *best = to - from < *best ? to - from : *best;
    }
    return BM_OK;
}

static bm_status measure(const char *path, size_t frames, size_t sequences,
                         double seconds)
{
    bm_recogniser r = {0};
    bm_backend *be = NULL;
    bm_batch b = {0};
    int32_t *lengths = calloc(sequences + 1, sizeof *lengths);
    double best = 0;
    bm_status status = BM_OK;

    if (lengths == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", sequences);
    BM_TRY_DONE(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_recogniser_read(&r, be, path, 1));
    BM_TRY_DONE(fill(be, r.features, frames, sequences, &b, lengths));
    BM_TRY_DONE(run(&r, &b, seconds, &best));
    printf("%.6g\n", 1e6 * best / (double)(frames * sequences));
done:
    bm_free(be, b.x.data);
    bm_recogniser_close(&r);
    bm_backend_close(be);
    free(lengths);
    return status;
}

int main(int argc, char **argv)
{
    long frames = argc == 5 ? atol(argv[2]) : 0;
    long sequences = argc == 5 ? atol(argv[3]) : 0;

    if (frames < 1 || sequences < 1) {
        fprintf(stderr,
                "usage: bmuf_time_network MODEL FRAMES SEQUENCES SECONDS\n");
        return 64;
    }
    if (measure(argv[1], (size_t)frames, (size_t)sequences, atof(argv[4])) ==
        BM_OK)
        return 0;
    fprintf(stderr, "bmuf_time_network: %s\n", bm_last_message());
    return 1;
}
