/*
 * The memory for reading does not depend on the number of shards, nor on how
 * units differ in size. A child process reads a data set from end to end and
 * prints its peak memory.
 */
#include "io/batch/reader.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A shard is one unit of 512 kB of floats; more shards than stay open. */
enum { D = 64, FRAMES = 512, SEQUENCES = 4, SHARDS = 36 };
enum { MARGIN = 2048 }; /* kB: less than the units of any store in a copy */

/* A sanitizer pads every allocation, and needs one byte for eight. */
#ifdef __SANITIZE_ADDRESS__
enum { TIMES = 3, EIGHTHS = 9 };
#else
enum { TIMES = 10, EIGHTHS = 8 };
#endif

static const char *self; /* this program */

/* ---- in the child process ------------------------------------------------ */

/* Peak memory in kB, since exec. */
static long peak(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kb;
}

static bm_status read_all(bm_reader *r)
{
    const bm_batch *batch = NULL;
    int64_t steps = 0;

    for (int64_t b = 0; b < bm_reader_blocks(r); b++) {
        BM_TRY(bm_reader_block(r, (bm_position){0, b}, &steps));
        for (int64_t m = 0; m < steps; m++)
            BM_TRY(bm_reader_batch(r, 0, m, &batch));
    }
    return BM_OK;
}

/* Reads an epoch in blocks of so many frames; prints the peak. */
static int read_and_print_peak(const char *directory, long block)
{
    bm_reader_settings set = {.plan = {.sequences = 4,
                                       .order = BM_ORDER_RANDOM,
                                       .buckets = 1,
                                       .frames_total = block},
                              .workers = 1,
                              .last = 1,
                              .seed = 1,
                              .once = true};
    bm_backend *be = NULL;
    bm_dataset *d = NULL;
    bm_reader *r = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_dataset_open(&d, directory));
    BM_TRY_DONE(bm_reader_open(&r, d, be, &set, (bm_position){0, 0}));
    BM_TRY_DONE(read_all(r));
    printf("%ld\n", peak());
done:
    bm_reader_close(r);
    bm_dataset_close(d);
    bm_backend_close(be);
    return status == BM_OK ? 0 : 1;
}

/* ---- the test ------------------------------------------------------------ */

/* A shard of one unit. */
static void write_shard(const char *directory, const char *name,
                        const char *store, size_t frames)
{
    static float x[FRAMES * D];
    bm_shard_settings set = {
        .unit_frames = SEQUENCES * FRAMES, .shard_mb = 1000, .store = store};
    bm_shard_meta meta = {.features = D, .features_text = "", .quant_scale = 1};
    bm_shard_writer *w = NULL;
    bm_vocab *v = NULL;
    int32_t label = 1;
    size_t shards = 0;

    for (size_t i = 0; i < FRAMES * D; i++)
        x[i] = (float)(i % 200);
    assert_ok(bm_vocab_new(&v, false));
    assert_ok(bm_vocab_learn(v, "a"));
    meta.vocab = v;
    assert_ok(bm_shard_writer_open(&w, directory, name, &set, &meta));
    for (int i = 0; i < SEQUENCES; i++)
        assert_ok(bm_shard_writer_add(w, "tag", NULL, x, frames, &label, 1));
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_int_equal(shards, 1);
    bm_shard_writer_close(w);
    bm_vocab_free(v);
}

/* Links the shards of one or two sets in turn as sets of their own, numbers
 * [from, to). */
static void add_copies(const scratch *s, const char *even, const char *odd,
                       int from, int to)
{
    char file[48], first[512];

    for (int i = from; i < to; i++) {
        snprintf(file, sizeof file, "%s-00000.bmuf.h5", i % 2 ? odd : even);
        snprintf(first, sizeof first, "%s", scratch_file(s, file));
        snprintf(file, sizeof file, "copy-%05d-00000.bmuf.h5", i);
        assert_int_equal(link(first, scratch_file(s, file)), 0);
    }
}

/* kB */
static long peak_of_reading(const char *directory, long block)
{
    char frames[24];
    FILE *from = NULL;
    int fds[2], result = 0;
    long kb = 0;
    pid_t pid = 0;

    snprintf(frames, sizeof frames, "%ld", block);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        /* it would keep freed memory */
        setenv("ASAN_OPTIONS", "quarantine_size_mb=0:detect_leaks=0", 1);
        dup2(fds[1], 1);
        execl(self, self, directory, frames, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    from = fdopen(fds[0], "r");
    assert_non_null(from);
    assert_int_equal(fscanf(from, "%ld", &kb), 1);
    fclose(from);
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_int_equal(result, 0);
    return kb;
}

static void test_memory_does_not_grow_with_the_number_of_shards(void **_)
{
    static const char *const stores[] = {"f32", "f16", "u8"};
    long block = 2L * SEQUENCES * FRAMES;

    (void)_;
    FOR_EACH (i, stores) {
        scratch s = scratch_open();
        long some = 0, many = 0;

        write_shard(s.path, "set", stores[i], FRAMES);
        add_copies(&s, "set", "set", 1, SHARDS);
        some = peak_of_reading(s.path, block);
        add_copies(&s, "set", "set", SHARDS, TIMES * SHARDS);
        many = peak_of_reading(s.path, block);
        print_message("%s: %ld kB, then %ld\n", stores[i], some, many);
        assert_true(some > 0 && many < some + MARGIN);
        scratch_close(&s);
    }
}

/* Units of 2048 and of 512 frames: three blocks are in memory, each at most one
 * unit larger than its nominal size. */
static void test_memory_does_not_depend_on_how_units_differ(void **_)
{
    scratch s = scratch_open();
    long large = SEQUENCES * FRAMES, block = 10 * large, one = 0, all = 0;
    long bound = 3 * (block + large) * D * 4 / 1024 * EIGHTHS / 8;

    (void)_;
    write_shard(s.path, "large", "f32", FRAMES);
    write_shard(s.path, "small", "f32", FRAMES / 4);
    add_copies(&s, "large", "small", 0, 10 * SHARDS);
    one = peak_of_reading(s.path, 1); /* a unit */
    all = peak_of_reading(s.path, block);
    print_message("%ld kB, and for three blocks %ld of %ld\n", one, all - one,
                  bound);
    assert_true(one > 0 && all - one < bound + MARGIN);
    scratch_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_does_not_grow_with_the_number_of_shards),
        cmocka_unit_test(test_memory_does_not_depend_on_how_units_differ),
    };

    if (argc > 2)
        return read_and_print_peak(argv[1], strtol(argv[2], NULL, 10));
    self = argv[0];
    return RUN_GROUP("memory", tests);
}
