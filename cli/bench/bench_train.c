/*
 * bench_train.c - training steps of standard networks: frames/s, and their rate
 * of floating-point operations relative to large square products (the peak).
 *
 * Time is processor time of this process, so that other programs disturb less;
 * with several threads or on a device it is wall-clock time. On the CPU steps
 * and peak are timed in turns, and the median of their ratios is reported: a
 * clock rate that changes affects both alike. On a device the peak comes last,
 * as large products heat it.
 *
 * On a device each mini-batch comes from the host, as in training. Steps on a
 * mini-batch that is already there are timed in turns with them; `stall` is the
 * time that these save.
 */
#include "cli/bench/bench.h"
#include "compute/cpu/libraries/onednn.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/text/words.h"
#include "models/model.h"
#include "sgd/sgd.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef bm_bench_work workload;

/* Row i is the name of workload i. */
static const char *const rows[] = {
    "blstm 4x320", "blstm B=32", "blstm 3x128",  "lstm 4x512",
    "lstmp 4x512", "bgru 4x320", "gru 4x512",    "dnn 6x1024",
    "tdnn 5x1280", "crnn",       "instancenorm", "dilated",
    "conformer",   "stacked",    "ctc alone",    NULL};

static const workload workloads[] = {
    {"blstm:320*4 linear", "ctc", 120, 30, 16, 200, 25},
    {"blstm:320*4 linear", "ctc", 120, 30, 32, 200, 25},
    {"blstm:128*3 linear", "ctc", 120, 30, 16, 200, 25},
    {"lstm:512*4 linear", "ctc", 120, 30, 16, 200, 25},
    {"lstm:512,project:256*4 linear", "ctc", 120, 30, 16, 200, 25},
    {"bgru:320*4 linear", "ctc", 120, 30, 16, 200, 25},
    {"gru:512*4 linear", "ctc", 120, 30, 16, 200, 25},
    {"linear:1024 relu linear:1024 relu linear:1024 relu linear:1024 relu "
     "linear:1024 relu linear:1024 relu linear",
     "cross_entropy", 440, 2000, 256, 1, 1},
    {/* experiments/presets/kaldi-tdnn.ini */
     "splice:-2..2 linear:1280 relu layernorm "
     "splice:-1,2 linear:1280 relu layernorm "
     "splice:-3,3 linear:1280 relu layernorm "
     "splice:-7,2 linear:1280 relu layernorm "
     "linear:1280 relu layernorm linear",
     "cross_entropy", 40, 2000, 8, 150, 150},
    {/* experiments/presets/crnn.ini without dropout */
     "conv:16,3x3 batchnorm leaky_relu pool:2x2 "
     "conv:32,3x3 batchnorm leaky_relu pool:2x2 "
     "conv:48,3x3 batchnorm leaky_relu pool:1x2 "
     "conv:64,3x3 batchnorm leaky_relu conv:80,3x3 batchnorm leaky_relu "
     "blstm:256*3 linear",
     "ctc", 48, 104, 16, 600, 40},
    {/* experiments/lectaurep/instancenorm.ini without dropout */
     "conv:8,3x3 instancenorm leaky_relu pool:2x2 "
     "conv:16,3x3 instancenorm leaky_relu pool:2x2 "
     "conv:32,3x3 instancenorm leaky_relu pool:1x2 blstm:96 linear",
     "ctc", 48, 96, 4, 400, 25},
    {"conv:32,3x3,stride:2x2 batchnorm gelu "
     "conv:64,3x3,dilation:2x2 batchnorm gelu dropout:0.1 "
     "conv:64,3x3,dilation:4x2 batchnorm gelu dropout:0.1 "
     "conv:64,3x3,dilation:8x2 batchnorm gelu dropout:0.1 pool:1x4,mean "
     "linear:256 tanh linear",
     "ctc", 80, 30, 16, 400, 25},
    {/* four blocks of experiments/presets/conformer-ctc.ini without dropout */
     "linear:144 ("
     " residual( layernorm linear:576 swish linear:144 scale:0.5 )"
     " residual( layernorm attention:4 )"
     " residual( layernorm linear:288 glu depthwise:31 batchnorm swish "
     "linear:144 )"
     " residual( layernorm linear:576 swish linear:144 scale:0.5 ) layernorm "
     ")*4 linear",
     "ctc", 320, 100, 16, 200, 40},
    {"stack:2 blstm:320,weight_dropout:0.3*2 subsample:2 "
     "blstm:320,weight_dropout:0.3*2 linear",
     "ctc", 120, 30, 16, 400, 25},
    {"", "ctc", 80, 80, 32, 800, 100},
};

/* The columns. */
enum {
    FRAMES_PER_S,
    STEP_MS,
    STEP_MS_MIN,
    FORWARD,
    LOSS,
    BACKWARD,
    UPDATE,
    GFLOPS,
    OF_PEAK,
    SGEMM_GFLOPS,
    MEAN_LOSS,
    STALL,
    PHASES = GFLOPS - FORWARD,
};

static const bm_bench_column columns[] = {
    [FRAMES_PER_S] = {"frames_per_s", "frames/s", 0, false},
    [STEP_MS] = {"step_ms", "ms/step", 2, false},
    [STEP_MS_MIN] = {"step_ms_min", NULL, 0, false}, /* of the best round */
    [FORWARD] = {"forward", "forward", 1, true},     /* fractions of the step */
    [LOSS] = {"loss", "loss", 1, true},
    [BACKWARD] = {"backward", "backward", 1, true},
    [UPDATE] = {"update", "update", 1, true},
    [GFLOPS] = {"gflops", "GFLOP/s", 1, false},
    [OF_PEAK] = {"share", "of sgemm", 0, true}, /* median of ratios */
    [SGEMM_GFLOPS] = {"sgemm_gflops", "sgemm", 1, false},
    [MEAN_LOSS] = {"mean_loss", NULL, 0, false}, /* per sequence */
    [STALL] = {"stall", NULL, 1, true}, /* fraction of a step, on a device */
    {0},
};

typedef struct bench {
    bm_backend *be;  /* borrowed */
    bm_model *model; /* NULL: the loss alone */
    bm_sgd *sgd;
    bm_batch batch;
    int32_t *frames, *classes, *count;
    float *x;          /* [BATCHES, B, T, D] on the host; NULL: not needed */
    bm_stored *stored; /* [BATCHES, B] */
    bm_stage *stage;
    size_t turn;
    float *dy, *work; /* for the loss alone */
    float *score;
    float *square[3]; /* [side, side]: factors and product of the peak */
    size_t side;
    bool wall;     /* time is wall-clock time, not processor time */
    double update; /* seconds of updates since note_phases */
    bool warned;   /* of sequences that the loss skips */
} bench;

/* Sides of the square products for the peak. */
static const size_t host_sizes[] = {512, 768, 1024, 1536};
static const size_t device_sizes[] = {512, 2048, 4096, 8192};
enum { SIZES = 4, BATCHES = 3, STALLS = 3 };

static const size_t *sizes(const bench *b)
{
    return bm_on_host(b->be) ? host_sizes : device_sizes;
}

static void free_squares(bench *b)
{
    for (size_t i = 0; i < 3; i++) {
        bm_free(b->be, b->square[i]);
        b->square[i] = NULL;
    }
    b->side = 0;
}

static float *normals(const char *stream, size_t n)
{
    bm_rng rng = bm_rng_make(1, stream, 0);
    float *x = malloc((n + 1) * sizeof *x);

    for (size_t i = 0; x != NULL && i < n; i++)
        x[i] = (float)bm_rng_normal(&rng);
    return x;
}

/* Allocates squares of at least n by n. Their rows repeat; they have no zeros,
 * with which a device needs less power and is faster. */
static bm_status have_squares(bench *b, size_t n)
{
    float *row = NULL;

    if (b->side >= n)
        return BM_OK;
    free_squares(b);
    for (size_t i = 0; i < 3; i++)
        BM_TRY(bm_alloc(b->be, n * n, &b->square[i]));
    row = normals("square", n);
    if (row == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a matrix of %zu rows", n);
    for (size_t i = 0; i < 2; i++) {
        bm_put(b->be, b->square[i], row, n);
        for (size_t done = n; done < n * n; done *= 2) {
            size_t more = n * n - done < done ? n * n - done : done;
            bm_axpby(b->be, more, 1, b->square[i], 0, b->square[i] + done);
        }
    }
    free(row);
    b->side = n;
    return BM_OK;
}

/* ---- steps -------------------------------------------------------------- */

/* One mini-batch on the backend, for all steps. */
static bm_status place(bench *b, size_t n)
{
    float *x = normals("bench", n);

    if (x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a mini-batch");
    bm_put(b->be, b->batch.x.data, x, n);
    free(x);
    return bm_sync(b->be);
}

/* BATCHES mini-batches on the host, sent to the backend in turns. */
static bm_status queue_up(bench *b, const workload *w)
{
    size_t frames = w->T * w->features, n = BATCHES * w->B;

    b->x = normals("bench", n * frames);
    b->stored = calloc(n + 1, sizeof *b->stored);
    if (b->x == NULL || b->stored == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for mini-batches");
    for (size_t i = 0; i < n; i++)
        b->stored[i] =
            (bm_stored){.x = b->x + i * frames, .bytes = sizeof *b->x};
    return bm_stage_open(&b->stage, b->be);
}

static bm_status draw(bench *b, const workload *w)
{
    size_t labels = w->B * w->labels;
    bm_rng rng = bm_rng_make(1, "labels", 0);
    bool ctc = strcmp(w->loss, "ctc") == 0;

    b->frames = malloc(w->B * sizeof *b->frames);
    b->count = malloc(w->B * sizeof *b->count);
    b->classes = malloc(labels * sizeof *b->classes);
    if (!b->frames || !b->count || !b->classes)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a mini-batch");
    for (size_t i = 0; i < labels; i++)
        b->classes[i] = (int32_t)(ctc ? 1 + bm_rng_below(&rng, w->classes - 1)
                                      : bm_rng_below(&rng, w->classes));
    for (size_t i = 0; i < w->B; i++) {
        b->frames[i] = (int32_t)w->T;
        b->count[i] = (int32_t)w->labels;
    }
    if (b->batch.x.data == NULL)
        return queue_up(b, w);
    return place(b, bm_count(b->batch.x));
}

/* The last message is about model.net, which is --net here. */
static bm_status in_words_of_net(void)
{
    static const char setting[] = "model.net";
    char why[1000];
    bool named = strncmp(bm_last_message(), setting, strlen(setting)) == 0;

    snprintf(why, sizeof why, "%s",
             bm_last_message() + (named ? strlen(setting) : 0));
    return BM_FAIL(BM_ERR_ARG, "bench: --net%s%s", named ? "" : ": ", why);
}

static bm_status open_model(bench *b, const workload *w)
{
    bm_model_settings settings = {w->net, w->loss, "skip"};
    bm_model_shape shape = {w->features, w->classes, 1};
    bm_sgd_settings sgd = {.momentum = 0.9, .clip = 5, .local_state = "keep"};

    bm_status status = bm_model_new(&b->model, &settings, &shape, b->be, 1);

    if (status == BM_ERR_CONFIG)
        return in_words_of_net();
    BM_TRY(status);
    return bm_sgd_new(&b->sgd, &sgd, bm_model_params(b->model));
}

static bm_status open_loss(bench *b, const workload *w)
{
    const bm_loss_ops *loss = bm_loss_find(w->loss);
    const bm_batch *batch = &b->batch;

    BM_TRY(bm_alloc(b->be, bm_count(batch->x), &b->dy));
    BM_TRY(bm_alloc(b->be, sizeof(bm_score) / sizeof(float), &b->score));
    return bm_alloc(
        b->be, loss->work(b->be, batch->extent, batch->targets, w->classes),
        &b->work);
}

/* Processor time counts every thread, and nothing of a device's time. */
static bool needs_wall_clock(const bm_bench *how)
{
    return how->device->threads > 1 || !bm_on_host(how->device->be);
}

static bm_status set_up(bench *b, const bm_bench *how, const workload *w)
{
    memset(b, 0, sizeof *b);
    b->be = how->device->be;
    b->wall = needs_wall_clock(how);
    b->batch.x = (bm_tensor){NULL, 3, {w->T, w->B, w->features, 1}};
    if (bm_on_host(b->be) || w->net[0] == '\0')
        BM_TRY(bm_alloc(b->be, bm_count(b->batch.x), &b->batch.x.data));
    BM_TRY(draw(b, w));
    b->batch.extent = (bm_extent){w->T, w->B, b->frames};
    b->batch.targets = (bm_targets){b->classes, b->count};
    return w->net[0] != '\0' ? open_model(b, w) : open_loss(b, w);
}

static void clear_up(bench *b)
{
    bm_sgd_free(b->sgd);
    bm_model_free(b->model);
    if (b->stage == NULL)
        bm_free(b->be, b->batch.x.data);
    bm_stage_close(b->stage);
    free(b->stored);
    free(b->x);
    bm_free(b->be, b->dy);
    bm_free(b->be, b->work);
    bm_free(b->be, b->score);
    for (size_t i = 0; i < 3; i++)
        bm_free(b->be, b->square[i]);
    free(b->frames);
    free(b->count);
    free(b->classes);
}

static double seconds(const bench *b)
{
    return b->wall ? bm_clock() : bm_bench_clock();
}

static bm_status step(bench *b, const workload *w, bool sends)
{
    if (b->stage != NULL && sends) {
        b->turn = (b->turn + 1) % BATCHES;
        BM_TRY(bm_stage_send(b->stage, b->batch.extent, w->features,
                             b->stored + b->turn * w->B, &b->batch.x.data));
    }
    if (b->model != NULL) {
        double since = 0;

        bm_model_gradient(b->model, &b->batch, 0, 0);
        since = bm_clock();
        bm_time_as(b->be, BM_PART_UPDATE);
        bm_sgd_step(b->sgd, 1e-4f);
        bm_time_as(b->be, BM_PART_OTHER);
        b->update += bm_clock() - since;
    } else {
        bm_tensor dy = b->batch.x;

        dy.data = b->dy;
        bm_loss_find(w->loss)->run(b->be, b->batch.extent, b->batch.targets,
                                   BM_INFEASIBLE_SKIP, 0, b->batch.x, dy,
                                   b->work, (bm_score *)(void *)b->score);
    }
    return BM_OK;
}

/* ---- times -------------------------------------------------------------- */

/* FLOP/s of `repeats` products of n by n, and the seconds they took. */
static bm_status multiply(bench *b, size_t n, size_t repeats, double *rate,
                          double *spent)
{
    double began = seconds(b);

    for (size_t i = 0; i < repeats; i++)
        bm_gemm(b->be, false, false, 1, bm_matrix(b->square[0], n, n),
                bm_matrix(b->square[1], n, n), 0,
                bm_matrix(b->square[2], n, n));
    BM_TRY(bm_sync(b->be));
    *spent = seconds(b) - began;
    *rate = 2.0 * (double)(n * n * n * repeats) / *spent;
    return BM_OK;
}

/* The highest FLOP/s of square products over all sizes. Stops after a size
 * whose products take long_time. */
static bm_status peak(bench *b, double *out)
{
    const double enough = 0.045, long_time = 0.2;
    double best = 0, rate = 0, spent = 0;

    for (size_t k = 0; k < SIZES && spent < long_time; k++) {
        size_t n = sizes(b)[k];

        BM_TRY(have_squares(b, n));
        BM_TRY(multiply(b, n, 1, &rate, &spent));
        if (spent < enough)
            BM_TRY(multiply(b, n, (size_t)(enough / spent) + 1, &rate, &spent));
        best = rate > best ? rate : best;
    }
    *out = best;
    return BM_OK;
}

/* Runs steps for at least `least` seconds; *out is the time of one. On a device
 * the number of steps queued between two syncs doubles, as the device is idle
 * while the host waits for it. `sends`: send a mini-batch for each step. */
static bm_status time_steps(bench *b, const workload *w, double least,
                            bool sends, double *out)
{
    size_t n = 0, together = bm_on_host(b->be) ? 1 : 8;
    double began = seconds(b), spent = 0;

    while (spent < least) {
        for (size_t i = 0; i < together; i++)
            BM_TRY(step(b, w, sends));
        BM_TRY(bm_sync(b->be));
        spent = seconds(b) - began;
        n += together;
        together = bm_on_host(b->be) ? 1 : n;
    }
    *out = spent / (double)n;
    return BM_OK;
}

/* Fractions of the steps since the last call, after a bm_sync. */
static void note_phases(bench *b, double *out)
{
    bm_model_times t = bm_model_spent(b->model);
    double update =
        bm_on_host(b->be) ? b->update : bm_timed(b->be, BM_PART_UPDATE);
    double all = t.forward + t.loss + t.backward + update;
    double phases[PHASES] = {t.forward, t.loss, t.backward, update};

    for (size_t i = 0; i < PHASES; i++)
        out[i] = phases[i] / all;
    b->update = 0;
}

/* The mean loss per sequence of all steps since the last call; NAN without
 * sequences. */
static bm_status take_loss(bench *b, double *out)
{
    bm_score s = {0};

    if (b->model != NULL) {
        BM_TRY(bm_model_score(b->model, 0, &s));
    } else {
        bm_get(b->be, (float *)(void *)&s, b->score, sizeof s / sizeof(float));
        BM_TRY(bm_sync(b->be));
    }
    *out = s.sequences > 0 ? s.loss / s.sequences : NAN;
    if (s.skipped > 0 && !b->warned)
        bm_log(BM_WARNING,
               "%.0f %% of the sequences have more labels than frames at the "
               "loss, which skips them: give fewer --labels or more --frames",
               100 * s.skipped / (s.skipped + s.sequences));
    b->warned = b->warned || s.skipped > 0;
    return BM_OK;
}

static bm_status measure(const bm_bench *how, size_t row, double *out)
{
    const workload *w = how->own.net != NULL ? &how->own : &workloads[row];
    double steps[BM_BENCH_ROUNDS], peaks[BM_BENCH_ROUNDS];
    double ratios[BM_BENCH_ROUNDS], stalls[STALLS];
    double flops = 0, median = 0, last = 1, still = 0;
    size_t n_stalls = 0;
    bool turns = bm_on_host(how->device->be);
    bench b;
    bm_status status = BM_OK;

    BM_TRY_DONE(set_up(&b, how, w));
    BM_TRY_DONE(time_steps(&b, w, 0.2, true, &median));
    BM_TRY_DONE(take_loss(&b, &out[MEAN_LOSS]));
    out[STALL] = NAN;
    for (size_t i = FORWARD; i <= SGEMM_GFLOPS; i++)
        out[i] = NAN;
    if (b.model != NULL) {
        flops = bm_model_flops(b.model);
        note_phases(&b, out + FORWARD);
    }
    for (size_t i = 0; i < how->rounds; i++) {
        peaks[i] = 1;
        if (flops > 0 && turns)
            BM_TRY_DONE(peak(&b, &peaks[i]));
        BM_TRY_DONE(time_steps(&b, w, 0.3, true, &steps[i]));
        if (b.stage == NULL || n_stalls == STALLS)
            continue;
        BM_TRY_DONE(time_steps(&b, w, 0.3, false, &still));
        stalls[n_stalls++] = 1 - still / steps[i];
    }
    if (n_stalls > 0)
        out[STALL] = bm_bench_median(n_stalls, stalls);
    BM_TRY_DONE(take_loss(&b, &out[MEAN_LOSS]));
    if (flops > 0 && !turns)
        BM_TRY_DONE(peak(&b, &last));
    for (size_t i = 0; i < how->rounds; i++) {
        peaks[i] = turns ? peaks[i] : last;
        ratios[i] = flops / steps[i] / peaks[i];
    }
    median = bm_bench_median(how->rounds, steps);
    out[FRAMES_PER_S] = (double)(w->T * w->B) / median;
    out[STEP_MS] = 1e3 * median;
    out[STEP_MS_MIN] = 1e3 * steps[0]; /* bm_bench_median sorted them */
    if (flops > 0) {
        note_phases(&b, out + FORWARD);
        out[GFLOPS] = 1e-9 * flops / median;
        out[OF_PEAK] = bm_bench_median(how->rounds, ratios);
        out[SGEMM_GFLOPS] = 1e-9 * bm_bench_median(how->rounds, peaks);
    }
done:
    clear_up(&b);
    return status;
}

/* ---- output ------------------------------------------------------------- */

static void print_peer(FILE *out)
{
    fputs("The same steps in PyTorch on one core, also in processor time; see\n"
          "docs/performance.md.\n\n"
          "  export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1\n"
          "  peer() { taskset -c 1 tools/pytorch/torch_peer.py --modes "
          "fp32:eager,fp32:compile \"$@\"; }\n",
          out);
    for (const workload *w = workloads; rows[w - workloads] != NULL; w++)
        fprintf(out,
                "  peer --net '%s' --loss %s --input %zu --classes %zu "
                "--batch %zu --frames %zu --labels %zu%s\n",
                w->net, w->loss, w->features, w->classes, w->B, w->T, w->labels,
                *w->net != '\0' ? "" : " --modes fp32:native");
    fputs("\nTo compare with bmuf bench --precision bf16, give --modes "
          "amp:eager,amp:compile.\n",
          out);
}

static void print_head(const bm_bench *how, FILE *out)
{
    const bm_device *d = how->device;
    const char *dnn = bm_onednn_version();

    if (!bm_on_host(d->be))
        fprintf(out, "%s, %s, wall-clock time", bm_backend_about(d->be),
                d->precision);
    else
        fprintf(out,
                "%s, %s, %s time; products by %s %s; forward, loss, "
                "backward and update in %% of a step",
                bm_count_noun((long long)d->threads, "thread").text,
                d->precision,
                needs_wall_clock(how) ? "wall-clock" : "processor",
                dnn != NULL ? "oneDNN" : "OpenBLAS, kernels",
                dnn != NULL ? dnn : openblas_get_corename());
}

const bm_benchmark bm_bench_train = {
    .name = "train",
    .rows = rows,
    .columns = columns,
    .print_head = print_head,
    .measure = measure,
    .print_peer = print_peer,
};
