/*
 * bench_read.c - the speed at which a reader delivers mini-batches from files
 * in the page cache, and the time to the first mini-batch.
 *
 * The data sets are written to a temporary directory. Features are 0, as the
 * speed does not depend on them; the lengths of sequences are drawn.
 */
#include "cli/bench/bench.h"
#include "core/file/temporary.h"
#include "core/rng.h"
#include "io/batch/reader.h"
#include "io/shard/shard.h"
#include "io/shard/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const rows[] = {"read f32", "read f16", "read u8",
                                   "start 10M", NULL};

typedef struct workload {
    const char *store;
    size_t features;
    size_t shortest, longest; /* sequences, in frames */
    size_t n, copies;         /* sequences of a shard; shards, all alike */
} workload;

static const workload workloads[] = {
    {"f32", 80, 60, 959, 800, 1},
    {"f16", 80, 60, 959, 800, 1},
    {"u8", 80, 60, 959, 800, 1},
    {"f32", 2, 1, 9, 100000, 100},
};

enum { READ, WITH_BATCHES, BARE, START };

static const bm_bench_column columns[] = {
    [READ] = {"read_gb_per_s", "GB/s", 2, false},
    [WITH_BATCHES] = {"gb_per_s", "as batches", 2, false},
    [BARE] = {"bare_gb_per_s", "bare read", 2, false},
    [START] = {"start_s", "first, s", 3, false},
    {0},
};

typedef struct bench {
    const workload *load;
    char directory[PATH_MAX];
    bm_backend *be;
    bm_dataset *d;
    bm_reader *r;
    int64_t epoch; /* the next one */
} bench;

/* ---- the data set -------------------------------------------------------- */

static bm_status add_all(bm_shard_writer *w, const workload *l, const float *x)
{
    bm_rng rng = bm_rng_make(1, "bench", 0);
    const int32_t label = 1;
    char tag[32];

    for (size_t i = 0; i < l->n; i++) {
        size_t frames = l->shortest + (size_t)bm_rng_below(
                                          &rng, l->longest - l->shortest + 1);

        snprintf(tag, sizeof tag, "%zu", i);
        BM_TRY(bm_shard_writer_add(w, tag, NULL, x, frames, &label, 1));
    }
    return BM_OK;
}

static bm_status write_shard(const bench *b, const workload *l)
{
    bm_shard_settings set = {
        .unit_frames = 2000, .shard_mb = 1e6, .store = l->store};
    bm_shard_meta meta = {.features = l->features,
                          .features_text = "",
                          .quant_scale = 1.0 / 16,
                          .quant_offset = -8};
    float *x = calloc(l->longest * l->features, sizeof *x);
    bm_shard_writer *w = NULL;
    bm_vocab *vocab = NULL;
    size_t shards = 0;
    bm_status status = BM_OK;

    if (x == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a sequence");
    BM_TRY_DONE(bm_vocab_new(&vocab, false));
    BM_TRY_DONE(bm_vocab_learn(vocab, "a"));
    meta.vocab = vocab;
    BM_TRY_DONE(bm_shard_writer_open(&w, b->directory, "bench00", &set, &meta));
    BM_TRY_DONE(add_all(w, l, x));
    BM_TRY_DONE(bm_shard_writer_finish(w, &shards));
done:
    bm_shard_writer_close(w);
    bm_vocab_free(vocab);
    free(x);
    return status;
}

/* The others are hard links to the first, each a pack of its own. */
static bm_status name_copies(const bench *b, size_t copies)
{
    char one[PATH_MAX + 64], other[PATH_MAX + 64];

    snprintf(one, sizeof one, "%s/bench00-00000" BM_SHARD_SUFFIX, b->directory);
    for (size_t i = 1; i < copies; i++) {
        snprintf(other, sizeof other, "%s/bench%02zu-00000" BM_SHARD_SUFFIX,
                 b->directory, i);
        if (link(one, other) != 0)
            return BM_FAIL(BM_ERR_IO, "%s: %s", other, strerror(errno));
    }
    return BM_OK;
}

/* The folder that a signal removes; the program ends by the signal then. */
static char in_use[PATH_MAX];

static void remove_and_die(int number)
{
    if (fork() == 0) {
        execl("/bin/rm", "rm", "-rf", "--", in_use, (char *)NULL);
        _exit(1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* A signal that is ignored, as by nohup, stays so. */
static void remove_if_stopped(const bench *b)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};

    snprintf(in_use, sizeof in_use, "%s", b->directory);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
        if (signal(stops[i], b->directory[0] != '\0' ? remove_and_die
                                                     : SIG_DFL) == SIG_IGN)
            signal(stops[i], SIG_IGN);
}

/* The shard that is not finished, if a disk is full, has a name of its own. */
static void remove_all(const bench *b)
{
    DIR *list = b->directory[0] != '\0' ? opendir(b->directory) : NULL;
    const struct dirent *entry = NULL;

    if (list == NULL)
        return;
    while ((entry = readdir(list)) != NULL)
        (void)unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
    rmdir(b->directory);
    remove_if_stopped(&(bench){0});
}

/* ---- reading ------------------------------------------------------------- */

/* Processor time of this thread, in seconds. */
static double own_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void close_data(bench *b)
{
    bm_reader_close(b->r);
    bm_dataset_close(b->d);
    b->r = NULL;
    b->d = NULL;
}

/* Opens the data set and reads the first mini-batch. */
static bm_status open_data(bench *b)
{
    bm_reader_settings set = {.plan = {.order = BM_ORDER_RANDOM,
                                       .buckets = 64,
                                       .frames_per_worker = 120000},
                              .workers = 1,
                              .last = 1,
                              .seed = 1};
    bm_position start = {0, 0};
    const bm_batch *batch = NULL;
    int64_t steps = 0;

    BM_TRY(bm_dataset_open(&b->d, b->directory));
    BM_TRY(bm_reader_open(&b->r, b->d, b->be, &set, start));
    BM_TRY(bm_reader_block(b->r, start, &steps));
    return bm_reader_batch(b->r, 0, 0, &batch);
}

static bm_status read_epoch(bench *b)
{
    const bm_batch *batch = NULL;
    bm_position at = {b->epoch++, 0};
    int64_t steps = 0;

    for (; at.block < bm_reader_blocks(b->r); at.block++) {
        BM_TRY(bm_reader_block(b->r, at, &steps));
        for (int64_t m = 0; m < steps; m++)
            BM_TRY(bm_reader_batch(b->r, 0, m, &batch));
    }
    return BM_OK;
}

/* Processor seconds per epoch of the reader's thread, and of both threads. */
static bm_status time_epoch(bench *b, double *thread, double *both)
{
    double own = own_clock(), all = bm_bench_clock();
    int n = 0;

    do {
        BM_TRY(read_epoch(b));
        n++;
    } while (bm_bench_clock() - all < 0.2);
    own = (own_clock() - own) / n;
    *both = (bm_bench_clock() - all) / n;
    *thread = *both - own;
    return BM_OK;
}

/* Processor seconds of read calls alone, for as many bytes as the features
 * have, a unit of the shard per call. */
static bm_status time_bare_read(const bench *b, double *out)
{
    const workload *l = b->load;
    bm_store store = BM_STORE_F32;
    size_t size = 0, unit = 0, got = 0;
    char *buffer = NULL;
    double began = 0;
    int fd = -1;
    bm_status status = BM_OK;

    BM_TRY(bm_store_find(l->store, &store));
    unit = 2000 * l->features * bm_store_size(store);
    size = (size_t)b->d->frames * l->features * bm_store_size(store);
    buffer = malloc(unit);
    fd = open(b->d->paths[0], O_RDONLY | O_CLOEXEC);
    if (buffer == NULL || fd < 0)
        BM_FAIL_DONE(BM_ERR_IO, "%s: %s", b->d->paths[0], strerror(errno));
    began = bm_bench_clock();
    while (got < size) {
        ssize_t n = pread(fd, buffer, unit, (off_t)got);
        if (n <= 0)
            BM_FAIL_DONE(BM_ERR_IO, "%s: %s", b->d->paths[0], strerror(errno));
        got += (size_t)n;
    }
    *out = bm_bench_clock() - began;
done:
    if (fd >= 0)
        close(fd);
    free(buffer);
    return status;
}

/* The columns before START. */
static bm_status read_once(void *self, double *out)
{
    bench *b = self;
    double thread = 0, both = 0, bare = 0;
    double gb = 1e-9 * (double)b->d->frames * (double)b->load->features * 4;

    BM_TRY(time_epoch(b, &thread, &both));
    BM_TRY(time_bare_read(b, &bare));
    out[READ] = gb / thread;
    out[WITH_BATCHES] = gb / both;
    out[BARE] = gb / bare;
    return BM_OK;
}

static bm_status start_once(void *self, double *out)
{
    bench *b = self;
    double began = bm_bench_clock();

    BM_TRY(open_data(b));
    *out = bm_bench_clock() - began;
    close_data(b);
    return BM_OK;
}

static bm_status measure(const bm_bench *how, size_t row, double *out)
{
    const workload *l = &workloads[row];
    bench b = {.load = l, .epoch = 1};
    bm_status status = BM_OK;

    out[READ] = out[WITH_BATCHES] = out[BARE] = NAN;
    BM_TRY_DONE(bm_backend_open(&b.be, "cpu", 0));
    BM_TRY_DONE(bm_temporary_folder_make(b.directory, "bench"));
    remove_if_stopped(&b);
    BM_TRY_DONE(write_shard(&b, l));
    BM_TRY_DONE(name_copies(&b, l->copies));
    BM_TRY_DONE(bm_bench_medians(how->rounds, 1, start_once, &b, &out[START]));
    if (l->copies == 1) {
        BM_TRY_DONE(open_data(&b));
        BM_TRY_DONE(read_epoch(&b)); /* allocates all memory */
        BM_TRY_DONE(bm_bench_medians(how->rounds, START, read_once, &b, out));
    }
done:
    close_data(&b);
    remove_all(&b);
    bm_backend_close(b.be);
    return status;
}

const bm_benchmark bm_bench_read = {
    .name = "read",
    .rows = rows,
    .columns = columns,
    .head = "reading cached files, GB of float32 features per second of "
            "processor time: of the\nreader's thread, with the making of "
            "mini-batches, and of read(2) alone; seconds\nuntil the first "
            "mini-batch",
    .measure = measure,
};
