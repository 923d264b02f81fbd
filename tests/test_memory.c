/*
 * Reading needs memory for some blocks, however many shards there are: a
 * process of its own reads a data set from end to end, and tells its peak.
 */
#include "io/reader.h"
#include "tests/scratch.h"

#include <sys/wait.h>

/* A shard is one unit of 512 kB of floats; more shards than stay open. */
enum { D = 64, FRAMES = 512, SEQUENCES = 4, SHARDS = 36 };
enum { MARGIN = 2048 }; /* kB: less than the units of any store in a copy */

static const char *self; /* this program */

/* ---- in the process of its own ------------------------------------------- */

/* kB, of this program's memory alone, whatever it was before exec. */
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

/* One epoch; prints the peak. */
static int read_and_tell(const char *directory)
{
    bm_reader_settings set = {.plan = {.sequences = 4,
                                       .order = "random",
                                       .buckets = 1,
                                       .frames_total = 2 * SEQUENCES * FRAMES},
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

static void write_shard(const char *directory, const char *store)
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
    assert_ok(bm_shard_writer_open(&w, directory, "set", &set, &meta));
    for (int i = 0; i < SEQUENCES; i++)
        assert_ok(bm_shard_writer_add(w, "tag", NULL, x, FRAMES, &label, 1));
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_int_equal(shards, 1);
    bm_shard_writer_close(w);
    bm_vocab_free(v);
}

/* Copies of the first, so that there are shards [from, to). */
static void add_copies(const scratch *s, int from, int to)
{
    size_t size = 0;
    char *shard = slurp(scratch_file(s, "set-00000.bmuf.h5"), &size);
    char name[32];

    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "set-%05d.bmuf.h5", i);
        spill(scratch_file(s, name), shard, size);
    }
    free(shard);
}

/* kB */
static long peak_of_reading(const char *directory)
{
    FILE *from = NULL;
    int fds[2], result = 0;
    long kb = 0;
    pid_t pid = 0;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        /* which else keeps what was freed */
        setenv("ASAN_OPTIONS", "quarantine_size_mb=0:detect_leaks=0", 1);
        dup2(fds[1], 1);
        execl(self, self, directory, (char *)NULL);
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

static void test_three_times_the_shards_need_no_more_memory(void **_)
{
    static const char *const stores[] = {"f32", "f16", "u8"};

    (void)_;
    FOR_EACH (i, stores) {
        scratch s = scratch_open();
        long some = 0, many = 0;

        write_shard(s.path, stores[i]);
        add_copies(&s, 1, SHARDS);
        some = peak_of_reading(s.path);
        add_copies(&s, SHARDS, 3 * SHARDS);
        many = peak_of_reading(s.path);
        print_message("%s: %ld kB, then %ld\n", stores[i], some, many);
        assert_true(some > 0 && many < some + MARGIN);
        scratch_close(&s);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_times_the_shards_need_no_more_memory),
    };

    if (argc > 1)
        return read_and_tell(argv[1]);
    self = argv[0];
    return RUN_GROUP("memory", tests);
}
