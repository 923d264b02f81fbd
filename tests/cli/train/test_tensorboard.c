/*
 * [job] tensorboard: event files have the bytes that TensorBoard reads, and the
 * numbers of the journal. scripts/tensorboard_test.sh reads such files with
 * TensorBoard itself.
 */
#include "cli/telemetry/event_file.h"
#include "core/log.h"
#include "io/shard/crc32c.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <event.pb-c.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- a reader ------------------------------------------------------------ */

static const char prefix[] = "events.out.tfevents.";

static int is_events(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
}

/* The path of event file i in a directory of the folder, in the order of their
 * names; NULL: there are fewer. Valid until the next call. */
static const char *events_path(const char *directory, int i)
{
    static char path[700];
    struct dirent **names = NULL;
    int n = scandir(in_folder(directory), &names, is_events, alphasort);

    assert_true(n >= 0);
    path[0] = '\0';
    for (int k = 0; k < n; k++) {
        if (k == i)
            snprintf(path, sizeof path, "%s/%s", in_folder(directory),
                     names[k]->d_name);
        free(names[k]);
    }
    free((void *)names);
    return path[0] != '\0' ? path : NULL;
}

static uint64_t little_endian(const char *from, int bytes)
{
    uint64_t x = 0;

    for (int i = bytes; i-- > 0;)
        x = x << 8 | (unsigned char)from[i];
    return x;
}

/* A checksum as it stands in a file. */
static uint32_t unmasked(const char *from)
{
    uint32_t crc = (uint32_t)little_endian(from, 4) - 0xa282ead8u;

    return crc << 15 | crc >> 17;
}

enum { MOST = 400 };
typedef struct events {
    size_t n;
    Tensorboard__Event *all[MOST];
} events_read;

/* Appends the events of a file; fails unless it consists of whole records with
 * valid checksums. */
static void read_events(events_read *e, const char *path)
{
    size_t size = 0, at = 0;
    char *bytes = slurp(path, &size);

    while (at < size) {
        uint64_t n = 0;

        assert_true(size - at >= 16);
        n = little_endian(bytes + at, 8);
        assert_int_equal(unmasked(bytes + at + 8), bm_crc32c(bytes + at, 8));
        assert_true(n <= size - at - 16);
        assert_int_equal(unmasked(bytes + at + 12 + n),
                         bm_crc32c(bytes + at + 12, n));
        assert_true(e->n < MOST);
        e->all[e->n] = tensorboard__event__unpack(
            NULL, n, (unsigned char *)bytes + at + 12);
        assert_non_null(e->all[e->n]);
        e->n++;
        at += 16 + n;
    }
    free(bytes);
}

static void free_events(events_read *e)
{
    for (size_t i = 0; i < e->n; i++)
        tensorboard__event__free_unpacked(e->all[i], NULL);
    e->n = 0;
}

/* The step from which on older files do not count. */
static int64_t first_step(const events_read *e)
{
    const Tensorboard__Event *second = e->all[1];

    assert_true(e->n > 1);
    if (second == NULL || second->session_log == NULL)
        fail_msg("the second event is no session log");
    else
        assert_int_equal(second->session_log->status, 1);
    return second != NULL ? second->step : 0;
}

/* The value of a tag at a step; NULL: there is none. Fails if there are
 * several. */
static const Tensorboard__Summary__Value *find(const events_read *e,
                                               const char *tag, int64_t step)
{
    const Tensorboard__Summary__Value *found = NULL;

    for (size_t i = 0; i < e->n; i++) {
        const Tensorboard__Summary *s = e->all[i]->summary;

        for (size_t k = 0; s != NULL && k < s->n_value; k++)
            if (e->all[i]->step == step && strcmp(s->value[k]->tag, tag) == 0) {
                assert_null(found);
                found = s->value[k];
            }
    }
    return found;
}

static void assert_scalar(const events_read *e, const char *tag, int64_t step,
                          const json_t *expected)
{
    const Tensorboard__Summary__Value *v = find(e, tag, step);

    if (json_is_null(expected)) {
        assert_null(v);
        return;
    }
    assert_non_null(v);
    assert_true(v->has_simple_value);
    assert_true(near(v->simple_value, json_number_value(expected), 1e-6));
}

/* ---- the format ---------------------------------------------------------- */

static void test_crc32c_has_the_known_answers(void **_)
{
    unsigned char zeros_of_iscsi[32] = {0};

    (void)_;
    assert_int_equal(bm_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(bm_crc32c(zeros_of_iscsi, 32), 0x8a9136aau); /* RFC 3720 */
    assert_int_equal(bm_crc32c("", 0), 0);
}

/* Bytes that TensorBoard's own writer makes; between them is the event that
 * says from which step on older files do not count. */
static void test_records_have_the_bytes_of_tensorboard(void **_)
{
    static const unsigned char version[] = {
        0x18, 0,    0,    0,   0,   0,   0,    0,    0xa3, 0x7f,
        0x4b, 0x22, 0x09, 0,   0,   0,   0,    0,    0,    0,
        0,    0x1a, 0x0d, 'b', 'r', 'a', 'i',  'n',  '.',  'E',
        'v',  'e',  'n',  't', ':', '2', 0xee, 0xdf, 0x28, 0xa3};
    static const unsigned char loss[] = {
        0x1a, 0,    0,    0,    0,    0,    0,    0,    0x12, 0x9b, 0xd8,
        0x2d, 0x09, 0,    0,    0,    0,    0,    0,    0xf0, 0x3f, 0x10,
        0x01, 0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 4,    'l',  'o',  's',  's',
        0x15, 0,    0,    0,    0x3f, 0x27, 0xf9, 0x5d, 0xb1};
    bm_scalar value = {"loss", 0.5};
    bm_event_file *f = NULL;
    events_read e = {0};
    char *bytes = NULL;
    size_t size = 0;

    (void)_;
    run_tool((char *[]){"mkdir", (char *)in_folder("bytes"), NULL});
    assert_ok(bm_event_file_open(&f, in_folder("bytes"), 3, 41, 0));
    bm_event_file_scalars(f, 1, 1, &value, 1);
    bm_event_file_close(f);
    assert_non_null(strstr(events_path("bytes", 0),
                           "/events.out.tfevents.0000000000.0003."));
    bytes = slurp(events_path("bytes", 0), &size);
    assert_true(size > sizeof version + sizeof loss);
    assert_memory_equal(bytes, version, sizeof version);
    assert_memory_equal(bytes + size - sizeof loss, loss, sizeof loss);
    free(bytes);
    read_events(&e, events_path("bytes", 0));
    assert_int_equal(e.n, 3);
    assert_int_equal(first_step(&e), 41);
    free_events(&e);
}

static void test_histograms_count_finite_numbers(void **_)
{
    enum { N = 301 };
    float x[N], y[N];
    bm_histogram h;
    double n = 0;

    (void)_;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i - 100;
        y[i] = x[i] - 2;
    }
    x[7] = NAN;
    x[9] = INFINITY;
    assert_true(bm_histogram_make(&h, x, NULL, N));
    assert_true(h.n == N - 2 && h.min == -100 && h.max == 200);
    assert_true(h.sum == N * 50. - (7 - 100) - (9 - 100));
    assert_int_equal(h.bins, 30);
    for (size_t k = 0; k < h.bins; k++) {
        assert_true(near(h.limit[k], -90 + 10. * (double)k, 1e-12));
        assert_true(h.count[k] == (k == 0 ? 8 : k == 29 ? 11 : 10));
        n += h.count[k];
    }
    assert_true(n == h.n);
    assert_true(bm_histogram_make(&h, x, y, N)); /* 2 everywhere */
    assert_true(h.bins == 1 && h.count[0] == N - 2 && h.limit[0] == 2);
    assert_true(h.sum_squares == 4. * (N - 2));
    assert_false(bm_histogram_make(&h, x + 7, NULL, 1));
    assert_false(bm_histogram_make(&h, x, NULL, 0));
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* What does not fit is left out as a whole, at any byte where the disk is
 * full; the file goes on when there is space again. */
static void test_a_full_disk_leaves_whole_records(void **_)
{
    (void)_;
    run_tool((char *[]){"mkdir", (char *)in_folder("full"), NULL});
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    bm_log_use_style(&(bm_log_style){.most = BM_ERROR});
    for (int room = 0; room < 160; room += 3) {
        bm_scalar value = {"x", 0};
        bm_event_file *f = NULL;
        events_read e = {0};
        const char *path = NULL;

        assert_ok(bm_event_file_open(&f, in_folder("full"), room, 1, 0));
        limit_files((rlim_t)room);
        for (int step = 1; step <= 3; step++)
            bm_event_file_scalars(f, 1, step, &value, 1);
        limit_files(RLIM_INFINITY);
        bm_event_file_scalars(f, 1, 4, &value, 1);
        bm_event_file_close(f);
        path = events_path("full", 0);
        read_events(&e, path);
        assert_true(e.n >= 3 && e.n <= 6);
        assert_string_equal(e.all[0]->file_version, "brain.Event:2");
        assert_non_null(e.all[1]->session_log);
        assert_non_null(find(&e, "x", 4));
        free_events(&e);
        assert_int_equal(unlink(path), 0);
    }
    bm_log_use_style(&(bm_log_style){.most = BM_NOTE});
    signal(SIGXFSZ, SIG_DFL);
}

/* ---- runs ---------------------------------------------------------------- */

static void assert_histograms(const events_read *e, int64_t step, bool updates)
{
    const Tensorboard__Summary__Value *w = find(e, "weights/2.linear.b", step);
    const Tensorboard__Summary__Value *u = find(e, "updates/2.linear.b", step);
    double n = 0;

    assert_non_null(w);
    assert_non_null(w->histo);
    assert_int_equal(w->histo->n_bucket, w->histo->n_bucket_limit);
    for (size_t i = 0; i < w->histo->n_bucket; i++)
        n += w->histo->bucket[i];
    assert_true(n == w->histo->num && n > 0);
    assert_true((u != NULL) == updates);
    if (u == NULL)
        return;
    /* The bias begins with 0 and is the sum of its updates. */
    assert_true(u->histo->num == n);
    assert_true(u->histo->max > u->histo->min);
}

/* The tags of the texts of a step, separated by blanks, with what is below. */
static void assert_texts(const events_read *e, int64_t step, const char *tags)
{
    char found[512] = "";

    for (size_t i = 0; i < e->n; i++) {
        const Tensorboard__Summary *s = e->all[i]->summary;

        if (e->all[i]->step != step || s == NULL || s->n_value != 1 ||
            s->value[0]->tensor == NULL)
            continue;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s ",
                 s->value[0]->tag);
        assert_string_equal(s->value[0]->metadata->plugin_data->plugin_name,
                            "text");
        assert_int_equal(s->value[0]->tensor->dtype, 7);
        assert_int_equal(s->value[0]->tensor->n_string_val, 1);
    }
    assert_string_equal(found, tags);
}

/* The text of a sequence at a step is this one: sequence i of test, and what
 * bmuf eval recognises with the model of that step. */
static void assert_example(const events_read *e, int64_t step, size_t i,
                           const char *model)
{
    const Tensorboard__Summary__Value *v = NULL;
    char tag[64], expected[200], mark[32], *line = NULL;
    ProtobufCBinaryData got = {0};
    outcome o = BMUF("eval", model, "test", "--hyp", "-");
    const char *end = NULL;

    assert_code(o, 0);
    snprintf(mark, sizeof mark, " (test-%zu)\n", i);
    end = strstr(o.out, mark);
    assert_non_null(end);
    line = strndup(o.out, (size_t)(end - o.out));
    snprintf(expected, sizeof expected,
             "    reference   %s\n    recognised  %s\n", speech_text(i),
             strrchr(line, '\n') != NULL ? strrchr(line, '\n') + 1 : line);
    free(line);
    snprintf(tag, sizeof tag, "examples/test-%zu", i);
    v = find(e, tag, step);
    assert_non_null(v);
    got = v->tensor->string_val[0];
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.data, expected, got.len);
}

/* The scalars of a run are the numbers of its journal, each step once. The
 * events are those of all its files, without those that a later file of a
 * resumed run takes back. */
static void assert_scalars(const events_read *e, const char *run, bool timed)
{
    json_t *all = journal(run), *row = NULL;
    size_t i = 0;
    int64_t blocks = 0;

    json_array_foreach(all, i, row)
    {
        const char *kind = text(row, "event");

        if (strcmp(kind, "block") == 0) {
            blocks++;
            assert_scalar(e, "train/loss", blocks,
                          json_object_get(row, "loss"));
            assert_scalar(e, "train/error", blocks,
                          json_object_get(row, "error"));
            assert_scalar(e, "filter/g_norm", blocks,
                          json_object_get(row, "g_norm"));
            assert_scalar(e, "filter/block_momentum", blocks,
                          json_object_get(row, "block_momentum"));
            if (timed)
                assert_scalar(e, "time/exchange_s", blocks,
                              json_object_get(row, "exchange_s"));
        } else if (strcmp(kind, "eval") == 0) {
            assert_true(number(row, "block") == (double)blocks);
            assert_scalar(e, "dev/label_error", blocks,
                          json_object_get(row, "ler"));
        } else if (strcmp(kind, "start") == 0) {
            assert_true(number(row, "blocks") == (double)blocks);
        }
    }
    assert_null(find(e, "train/loss", blocks + 1));
    json_decref(all);
}

/* Sequences i * 21 / 8 of test. */
#define EXAMPLES                                                               \
    "examples/test-0 examples/test-2 examples/test-5 examples/test-7 "         \
    "examples/test-10 examples/test-13 examples/test-15 examples/test-18 "

static void test_a_run_has_event_files_and_the_same_model(void **_)
{
    events_read e = {0};
    int64_t per_epoch = 0;
    json_t *start = NULL;

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "plain"), 0);
    assert_null(events_path("plain", 0));
    assert_code(BMUF("train", "tiny.ini", "--out", "board", "--set",
                     "job.tensorboard=yes"),
                0);
    assert_same_model("plain", "board");
    assert_null(events_path("board", 1));
    read_events(&e, events_path("board", 0));
    assert_scalars(&e, "board", true);
    start = last_event("board", "start");
    per_epoch = (int64_t)number(start, "blocks_per_epoch");
    assert_histograms(&e, 0, false);
    assert_texts(&e, 0, "");
    for (int epoch = 1; epoch <= 3; epoch++) {
        assert_histograms(&e, epoch * per_epoch, true);
        assert_texts(&e, epoch * per_epoch, EXAMPLES);
    }
    assert_example(&e, 3 * per_epoch, 2 * 21 / 8, "board/model.safetensors");
    assert_null(find(&e, "weights/2.linear.b", per_epoch - 1));
    json_decref(start);
    free_events(&e);
}

/* Rank 0 writes what all ranks have seen. */
static void test_examples_of_all_ranks_are_shown(void **_)
{
    events_read e = {0};
    json_t *end = NULL;
    int64_t blocks = 0;

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "pair", "-n", "2", "--set",
                     "job.tensorboard=yes"),
                0);
    assert_same_model("plain", "pair");
    read_events(&e, events_path("pair", 0));
    assert_null(events_path("pair", 1));
    end = last_event("pair", "end");
    blocks = (int64_t)number(end, "blocks");
    assert_texts(&e, blocks, EXAMPLES);
    for (size_t i = 0; i < 8; i++)
        assert_example(&e, blocks, i * 21 / 8, "pair/model.safetensors");
    assert_histograms(&e, blocks, true);
    json_decref(end);
    free_events(&e);
}

/* The global model is copied between epochs, under each strategy, where nothing
 * else does that: there is no data.dev. */
static void test_looking_at_a_model_changes_no_strategy(void **_)
{
    static const char *const strategies[][2] = {
        {"train.strategy=ssgd", "train.ema=0.5"},
        {"block.overlap=yes", "block.fragments=2"},
        {"train.strategy=easgd", "train.ema=0"},
        {"train.strategy=average", "block.warmup=2"}};

    (void)_;
    FOR_EACH (i, strategies) {
        const char *const with[] = {"no", "yes"};

        FOR_EACH (k, with) {
            char board[32];

            snprintf(board, sizeof board, "job.tensorboard=%s", with[k]);
            remove_run(with[k]);
            assert_code(BMUF("train", "tiny.ini", "--out", with[k], "--set",
                             board, "--set", strategies[i][0], "--set",
                             strategies[i][1], "--set", "data.dev=", "--set",
                             "train.epochs=2"),
                        0);
        }
        assert_same_model("no", "yes");
        assert_non_null(events_path("yes", 0));
    }
}

/* Removes events from `step` on, as TensorBoard does. */
static void purge(events_read *e, int64_t step)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++)
        if (e->all[i]->has_step && e->all[i]->step >= step)
            tensorboard__event__free_unpacked(e->all[i], NULL);
        else
            e->all[n++] = e->all[i];
    e->n = n;
}

/* Makes a run one that was killed in the middle of its second epoch. Returns
 * the number of blocks in its last checkpoint. */
static int cut_run(const char *run)
{
    json_t *start = last_event(run, "start");
    int per_epoch = (int)number(start, "blocks_per_epoch"), newest = 0;

    json_decref(start);
    while (checkpoints(run, &newest) > 0 && newest >= 2 * per_epoch)
        assert_int_equal(unlink(checkpoint_of(run, newest)), 0);
    assert_true(newest > per_epoch);
    return newest;
}

#define BOARD_OF(run)                                                          \
    BMUF("train", "tiny.ini", "--out", run, "--set", "job.tensorboard=yes",    \
         "--set", "train.checkpoint_every=1", "--set", "train.keep=100")

static void test_a_resumed_run_goes_on_in_a_new_file(void **_)
{
    events_read e = {0}, last = {0};
    int blocks = 0, per_epoch = 0;

    (void)_;
    assert_code(BOARD_OF("cut"), 0);
    read_events(&e, events_path("cut", 0));
    blocks = cut_run("cut");
    per_epoch = blocks / 2 + 1;
    assert_code(BOARD_OF("cut"), 0);
    assert_same_model("cut", "plain");
    read_events(&last, events_path("cut", 1));
    assert_int_equal(first_step(&last), blocks + 1);
    for (size_t i = 2; i < last.n; i++)
        assert_true(last.all[i]->step > blocks);
    purge(&e, blocks + 1);
    for (size_t i = 0; i < last.n; i++)
        e.all[e.n++] = last.all[i];
    assert_scalars(&e, "plain", false);
    /* No updates of the epoch of which this job saw a part. */
    assert_histograms(&e, per_epoch, true);
    assert_histograms(&e, 2 * per_epoch, false);
    assert_histograms(&e, 3 * per_epoch, true);
    free_events(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_has_the_known_answers),
        cmocka_unit_test(test_records_have_the_bytes_of_tensorboard),
        cmocka_unit_test(test_histograms_count_finite_numbers),
        cmocka_unit_test(test_a_full_disk_leaves_whole_records),
        cmocka_unit_test(test_a_run_has_event_files_and_the_same_model),
        cmocka_unit_test(test_examples_of_all_ranks_are_shown),
        cmocka_unit_test(test_looking_at_a_model_changes_no_strategy),
        cmocka_unit_test(test_a_resumed_run_goes_on_in_a_new_file),
    };

    return cmocka_run_group_tests(tests, make_corpus, folder_remove);
}
