/*
 * From manifests to a trained model, verb by verb: pack, check, info, explain,
 * train; what each prints, against what must be so.
 */
#include "tests/command.h"
#include "tests/folder.h"
#include "tests/support.h"

#include <jansson.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading what is printed -------------------------------------------- */

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (o == NULL)
        print_error("%s in: %s\n", error.text, text);
    assert_non_null(o);
    return o;
}

static double number(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);

    if (!json_is_number(value))
        print_error("no number %s\n", key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void assert_text(const json_t *o, const char *key, const char *text)
{
    assert_non_null(json_string_value(json_object_get(o, key)));
    assert_string_equal(json_string_value(json_object_get(o, key)), text);
}

/* The number behind the words, at their first place. */
static double after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    char *end = NULL;
    double x = 0;

    if (at == NULL) {
        print_error("'%s' is not in: %s\n", words, text);
        fail();
        return NAN;
    }
    at += strlen(words);
    x = strtod(at, &end);
    assert_true(end != at);
    return x;
}

/* As printed: with so many digits. */
#define assert_after(text, words, x, digits)                                   \
    assert_true(near(after(text, words) / (x), 1, 6 * pow(10, -(digits))))

/* ---- what the corpus must come to --------------------------------------- */

/* Frames of 25 ms every 10 ms that lie within a recording, at 8000 Hz. */
static size_t frames_of(size_t i)
{
    return 1 + (800 * strlen(speech_text(i)) - 200) / 80;
}

static size_t words_of(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == ' ';
    return n;
}

static size_t total(size_t n, size_t (*of)(size_t i))
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += of(i);
    return sum;
}

static size_t labels_of(size_t i)
{
    return strlen(speech_text(i));
}

static size_t words_at(size_t i)
{
    return words_of(speech_text(i));
}

/* ---- pack, check, info -------------------------------------------------- */

static void test_recordings_become_shards(void **_)
{
    char line[200];
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "again",
                     "--set", "features.mels=8");
    json_t *info = NULL;

    (void)_;
    snprintf(line, sizeof line,
             "42 sequences, %zu frames, %zu labels, 5 classes in 1 shard of "
             "again; 0 left out, 0 symbols unknown\n",
             total(42, frames_of), total(42, labels_of));
    assert_code(o, 0);
    assert_string_equal(o.out, line);
    o = BMUF("check", "again");
    assert_code(o, 0);
    assert_says(o.out, "42 sequences");
    assert_says(o.out, ": no problems");
    assert_string_equal(o.err, "");
    o = BMUF("info", "again", "--json");
    assert_code(o, 0);
    info = parse(o.out);
    assert_text(info, "path", "again");
    assert_true(number(info, "shards") == 1);
    assert_true(number(info, "sequences") == 42);
    assert_true(number(info, "frames") == (double)total(42, frames_of));
    assert_true(number(info, "labels") == (double)total(42, labels_of));
    assert_true(number(info, "features") == 8);
    assert_true(number(info, "classes") == 5);
    assert_true(near(number(info, "frame_shift"), 0.01, 1e-9));
    assert_text(info, "store", "f32");
    assert_text(info, "symbols", "characters");
    assert_text(info, "task", "ctc");
    assert_true(number(json_object_get(info, "made_with"), "mels") == 8);
    json_decref(info);
}

static void test_shards_are_replaced_by_force_only(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "forced"), 0);
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "forced"), 73);
    assert_says(BMUF("info", "forced").out, "sequences  21 in 1 shard");
    assert_code(
        BMUF("pack", "--audio", "train.jsonl", "--out", "forced", "--force"),
        0);
    assert_says(BMUF("info", "forced").out, "sequences  42 in 1 shard");
}

static void test_what_a_killed_packing_left_goes_by_force(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "left"), 0);
    write_text("left/.data-00001.bmuf.h5.tmp", "half a shard");
    assert_code(BMUF("check", "left"), 65);
    assert_code(
        BMUF("pack", "--audio", "test.jsonl", "--out", "left", "--force"), 0);
    assert_code(BMUF("check", "left"), 0);
}

static void test_an_id_has_a_longest_length(void **_)
{
    char line[400], id[257];

    (void)_;
    memset(id, 'i', 256);
    id[256] = '\0';
    snprintf(line, sizeof line, "{\"id\": \"%s\", \"audio\": \"test-0.wav\"}\n",
             id);
    write_text("ids.jsonl", line);
    assert_fails(BMUF("pack", "--audio", "ids.jsonl", "--out", "ids"), 65,
                 "ids.jsonl:1: its id is longer than 255 bytes");
    snprintf(line, sizeof line, "{\"id\": \"%s\", \"audio\": \"test-0.wav\"}\n",
             id + 1);
    write_text("ids.jsonl", line);
    assert_code(BMUF("pack", "--audio", "ids.jsonl", "--out", "ids"), 0);
}

static void test_shards_end_by_size(void **_)
{
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "many",
                     "--name", "part", "--set", "features.mels=8", "--set",
                     "shard.unit_frames=1", "--set", "shard.shard_mb=0.001");
    char name[64];
    int n = 0;

    (void)_;
    assert_code(o, 0);
    for (;; n++) {
        snprintf(name, sizeof name, "many/part-%05d.bmuf.h5", n);
        if (access(in_folder(name), F_OK) != 0)
            break;
    }
    /* 28 or more frames of 32 bytes fill a kB, so 2 sequences do, or 3 */
    assert_in_range(n, 14, 42);
    snprintf(name, sizeof name, "5 classes in %d shards of many", n);
    assert_says(o.out, name);
    snprintf(name, sizeof name, "42 in %d shards, 42 units", n);
    assert_says(BMUF("info", "many").out, name);
    assert_code(BMUF("check", "many"), 0);
}

static void test_words_can_be_the_units(void **_)
{
    char line[100];
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "words",
                     "--units", "words");

    (void)_;
    /* a, aa, ab, abc, ac, acb, b, ba, bb, bc, bca, c, ca, cab, cb, cc */
    snprintf(line, sizeof line, " %zu labels, 17 classes", total(42, words_at));
    assert_code(o, 0);
    assert_says(o.out, line);
    assert_says(BMUF("info", "words").out, "17 words, blank included");
}

static void test_unknown_symbols_are_counted(void **_)
{
    outcome o;

    (void)_;
    write_text("strange.jsonl",
               "{\"id\": \"1\", \"audio\": \"test-0.wav\", \"text\": \"axb\"}\n"
               "{\"id\": \"2\", \"audio\": \"test-1.wav\", \"text\": \"ab\"}\n"
               "{\"id\": \"3\", \"audio\": \"test-2.wav\", \"text\": "
               "\"\xc3\xa9yx c\"}\n");
    o = BMUF("pack", "--audio", "strange.jsonl", "--out", "strange", "--vocab",
             "train");
    assert_code(o, 0);
    assert_says(o.out, "3 sequences, ");
    assert_says(o.out, " 6 labels, 5 classes ");
    assert_says(o.out, "; 0 left out, 4 symbols unknown\n");
    assert_says(o.err, "warning");
    assert_says(o.err, "4 symbols in 2 texts are not in the vocabulary");
    assert_says(o.err, "'x' for one");
    o = BMUF("pack", "--audio", "strange.jsonl", "--out", "strange2", "--vocab",
             "train/vocab.txt");
    assert_code(o, 0);
    assert_says(o.out, "5 classes");
}

static void test_recordings_that_are_none_are_left_out(void **_)
{
    outcome o;

    (void)_;
    write_text("noise.wav", "this is not sound");
    write_text("odd.jsonl",
               "{\"id\": \"1\", \"audio\": \"test-0.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"2\", \"audio\": \"noise.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd");
    assert_code(o, 0);
    assert_says(o.err, "2 is left out: ");
    assert_says(o.err, "noise.wav");
    assert_says(o.out, "1 sequences, ");
    assert_says(o.out, "; 1 left out");
    write_text("odd.jsonl",
               "{\"id\": \"2\", \"audio\": \"noise.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd2");
    assert_fails(o, 65, "none of the 1 recordings can be read: noise.wav");
    write_text("odd.jsonl",
               "{\"id\": \"1\", \"audio\": \"none.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"2\", \"audio\": \"test-1.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"3\", \"audio\": \"null.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd3");
    assert_fails(o, 66, "odd.jsonl:1: none.wav", "odd.jsonl:3: null.wav");
}

/* A line of handwriting: bars of one ink on white. */
static void draw_line(const char *name, unsigned width)
{
    enum { HEIGHT = 24, WIDEST = 200 };
    static unsigned char grey[HEIGHT * WIDEST];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = width,
                       .height = HEIGHT,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < (size_t)HEIGHT * width; i++)
        grey[i] = i % width % 9 < 2 ? 20 : 255;
    assert_true(
        png_image_write_to_file(&image, in_folder(name), 0, grey, 0, NULL));
}

static void test_line_images_become_shards(void **_)
{
    outcome o;
    json_t *info = NULL;

    (void)_;
    draw_line("one.png", 80);
    draw_line("two.png", 122);
    write_text("lines.jsonl",
               "{\"id\": \"1\", \"image\": \"one.png\", \"text\": \"abc\"}\n"
               "{\"id\": \"2\", \"image\": \"two.png\", \"text\": \"b c\"}\n");
    o = BMUF("pack", "--images", "lines.jsonl", "--out", "lines", "--set",
             "features.height=12", "--set", "features.columns=5");
    assert_code(o, 0);
    /* half as high, half as wide: 40 and 61 columns, 8 and 13 frames */
    assert_says(o.out, "2 sequences, 21 frames, 6 labels, 5 classes");
    assert_code(BMUF("check", "lines"), 0);
    info = parse(BMUF("info", "--json", "lines").out);
    assert_true(number(info, "features") == 60);
    assert_true(number(info, "frames") == 21);
    assert_text(info, "store", "u8");
    json_decref(info);
}

static void write_npy(const char *name, size_t rows, size_t columns)
{
    static const unsigned char magic[10] = {0x93, 'N', 'U', 'M',  'P',
                                            'Y',  1,   0,   0x76, 0};
    size_t size = 128 + rows * columns * sizeof(float);
    char *all = calloc(1, size);
    float *x = (float *)(void *)(all + 128);
    int n = 0;

    assert_non_null(all);
    memcpy(all, magic, sizeof magic);
    n = snprintf(all + 10, 118,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, "
                 "%zu), }",
                 rows, columns);
    memset(all + 10 + n, ' ', (size_t)(117 - n));
    all[127] = '\n';
    for (size_t i = 0; i < rows * columns; i++)
        x[i] = (float)(i * 7 % 11);
    write_bytes(name, all, size);
    free(all);
}

static void test_ready_made_features_become_shards(void **_)
{
    outcome o;

    (void)_;
    write_npy("one.npy", 10, 3);
    write_npy("two.npy", 14, 3);
    write_text("feats.jsonl",
               "{\"id\": \"1\", \"feats\": \"one.npy\", \"text\": \"ab\"}\n"
               "{\"id\": \"2\", \"feats\": \"two.npy\", \"text\": \"ba\"}\n");
    o = BMUF("pack", "--features", "feats.jsonl", "--out", "feats", "--set",
             "features.stack=2", "--set", "features.subsample=2");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences, 12 frames, 4 labels, 3 classes");
    assert_says(BMUF("info", "feats").out, "features   6 a frame");
    assert_code(BMUF("check", "feats"), 0);
}

/* With a stride of three, 7 characters with a repeat need 8 frames of 13. */
static void test_check_knows_what_a_stride_leaves(void **_)
{
    outcome o;

    (void)_;
    write_speech("short.wav", "aa"); /* 18 frames */
    write_text("short.jsonl", "{\"id\": \"s\", \"audio\": \"short.wav\", "
                              "\"text\": \"abbcaba\"}\n");
    assert_code(BMUF("pack", "--audio", "short.jsonl", "--out", "short"), 0);
    assert_code(BMUF("check", "short"), 0);
    o = BMUF("check", "short", "--stride", "3");
    assert_code(o, 65);
    assert_says(o.out, "7 labels with 1 repeats need 8 frames, but 18 / 3 = 6");
}

/* ---- explain ------------------------------------------------------------ */

static void test_explain_prints_what_formulas_say(void **_)
{
    static const double etas[] = {0.5, 0.75, 0.9};
    double frames = (double)total(42, frames_of), blocks = 10;

    (void)_;
    FOR_EACH (i, etas) {
        double eta = etas[i], zeta = 0.8, block = frames / blocks;
        char momentum[40];
        outcome o;

        snprintf(momentum, sizeof momentum, "bmuf.momentum=%g", eta);
        o = BMUF("explain", "tiny.ini", "--set", momentum, "--set",
                 "bmuf.rate=0.8", "--set", "block.frames_total=128", "--set",
                 "train.epochs=7", "--set", "batch.sequences=2");
        assert_code(o, 0);
        assert_string_equal(o.err, "");
        assert_says(o.out, "data              42 sequences, ");
        assert_says(o.out, "bmuf, 2 workers on 1 rank\n");
        assert_after(o.out, "block gain", zeta, 6);
        assert_after(o.out, "steady gain", zeta / (1 - eta), 6);
        assert_after(o.out, "block momentum", eta, 6);
        assert_after(o.out, "time constant", -1 / log(eta), 4);
        assert_after(o.out, " blocks = ", -block / log(eta), 4);
        assert_after(o.out, "block    ", block, 2);
        assert_after(o.out, "frames = ", block / 2, 2);
        assert_after(o.out, "= about ", block / 2 / (2 * frames / 42), 1);
        assert_after(o.out, "\nblocks    ", blocks, 6);
        assert_after(o.out, "an epoch, ", 7 * blocks, 6);
    }
}

/* Two layers: of 8 features to 1000, and of these to 5 classes. */
static void test_explain_tells_what_else_is_done_with_blocks(void **_)
{
    outcome o =
        BMUF("explain", "tiny.ini", "-n", "2", "--set",
             "model.net=linear:1000 linear", "--set", "block.fragments=2",
             "--set", "block.overlap=yes", "--set", "block.warmup=3", "--set",
             "block.seconds=20", "--set", "bmuf.momentum=0.5");
    double weights = 9000 + 5005;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "2, each exchanged every 2 blocks: 9000 5005 weights\n");
    assert_says(o.out, "\noverlap           a block's exchange goes on");
    assert_says(o.out, "\nwarm-up           3 blocks");
    assert_says(o.out, "\ntime              a rank has 20 s");
    assert_after(o.out, "time constant", -2 / log(0.5), 4);
    assert_after(o.out, "at 1 GB/s ", 2 * 4 * weights / 2 / 2 * 1e-9, 2);
}

static void test_explain_counts_bytes_of_an_exchange(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "-n", "4", "--set", "job.workers=6",
                     "--set", "model.net=linear:1000 linear", "--set",
                     "block.frames_total=300", "--set", "batch.sequences=1");
    double weights = 8 * 1000 + 1000 + 1000 * 5 + 5;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "warning: 6 workers on 4 ranks: some host 2, others 1; "
                       "25 % of the ranks' time is waiting");
    /* reduce-scatter and all-gather: (P - 1) / P of the vector each */
    assert_says(o.out, "exchange          0.1 MB sent by each of 4 ranks");
    assert_after(o.out, "at 1 GB/s ", 2 * 4 * weights * 3 / 4 * 1e-9, 2);
}

/* Of two ranks with a worker each, both send one code of the whole model. */
static void test_explain_counts_bytes_of_codes(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "-n", "2", "--set", "job.workers=2",
                     "--set", "model.net=linear:1000 linear", "--set",
                     "compress.code=onebit");
    /* columns of 8 and of 1000 weights, two vectors */
    double bytes =
        1000 * (8 + 4 * 1) + (8 + 4 * 32) + 5 * (8 + 4 * 32) + (8 + 4 * 1);

    (void)_;
    assert_code(o, 0);
    assert_after(o.out, "at 1 GB/s ", bytes * 1e-9, 2);
    o = BMUF("explain", "tiny.ini", "--set", "compress.code=int8", "--set",
             "job.sum=exact");
    assert_code(o, 78);
    assert_says(o.err, "job.sum = exact does not go with codes");
}

/* All sequences in one mini-batch, and each in its own. */
static void test_explain_counts_padding(void **_)
{
    static const char *const size[] = {"batch.sequences=42",
                                       "batch.sequences=1"};
    double frames = (double)total(42, frames_of), longest = 0;
    double percent[] = {0, 0};

    (void)_;
    for (size_t i = 0; i < 42; i++)
        longest = fmax(longest, (double)frames_of(i));
    percent[0] = 100 * (1 - frames / (42 * longest));
    FOR_EACH (i, size) {
        outcome o = BMUF("explain", "tiny.ini", "--set", "job.workers=1",
                         "--set", "train.strategy=local", "--set",
                         "block.frames_total=10000", "--set", size[i]);

        assert_code(o, 0);
        assert_true(fabs(after(o.out, "padding ") - percent[i]) < 0.051);
    }
}

static void test_explain_refuses_and_warns(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "--set", "bmuf.rate=2.5", "--set",
                     "train.epochs=9");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "warning: bmuf.rate = 2.5 moves the model 2.5 times");
    o = BMUF("explain", "tiny.ini", "--set", "block.frames_total=5000");
    assert_code(o, 78);
    assert_says(o.err, "an epoch is one block");
    o = BMUF("explain", "tiny.ini", "--set", "block.frames_total=100");
    assert_code(o, 78);
    assert_says(o.err, "of a mini-batch");
    o = BMUF("explain", "tiny.ini", "--set", "train.strategy=average");
    assert_code(o, 0);
    assert_null(strstr(o.out, "gain"));
    o = BMUF("explain", "tiny.ini", "--set", "train.strategy=diloco", "--set",
             "train.epochs=9", "--set", "sgd.update=momentum");
    assert_code(o, 0);
    assert_says(o.out, "warning: train.strategy = diloco is made for AdamW");
}

/* ---- train, info -------------------------------------------------------- */

static void test_a_model_is_trained_and_described(void **_)
{
    outcome o =
        BMUF("train", "tiny.ini", "--out", "run", "--set", "data.test=test");
    json_t *run = NULL, *model = NULL, *end = NULL;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "epochs    3\n");
    assert_after(o.out, "blocks ", 9., 6);
    assert_after(o.out, "frames ", 3. * (double)total(42, frames_of), 6);
    assert_says(o.out, "test LER ");
    assert_says(o.out, "model     run/model.safetensors\n");
    run = parse(BMUF("info", "run", "--json").out);
    end = json_object_get(run, "end");
    assert_text(end, "reason", "done");
    assert_true(number(end, "epochs") == 3 && number(end, "blocks") == 9);
    assert_says(o.out, json_string_value(json_object_get(end, "digest")));
    assert_true(number(json_object_get(run, "start"), "workers") == 2);
    assert_true(number(json_object_get(run, "start"), "sequences") == 42);
    assert_text(json_object_get(run, "eval"), "data", "test");
    assert_says(BMUF("info", "run").out, "  reason           \"done\"\n");

    /* What it is does not depend on where it lies. */
    run_tool((char *[]){"cp", "-r", (char *)in_folder("run"),
                        (char *)in_folder("block-1"), NULL});
    assert_code(BMUF("info", "block-1/model.safetensors"), 0);
    model = parse(BMUF("info", "run/model.safetensors", "--json").out);
    assert_text(model, "net", "stack:2 blstm:16 linear");
    assert_text(model, "loss", "ctc");
    assert_text(model, "features", "8");
    assert_text(model, "units", "characters");
    assert_true(json_array_size(json_object_get(model, "tensors")) > 2);
    /* blstm: 2 x 4 x 16 (16 + 16 + 1); linear: 33 x 5 */
    o = BMUF("info", "run/model.safetensors");
    assert_says(o.out, "4389 floats in all");
    o = BMUF("info", "run/checkpoints/block-00000009.safetensors");
    assert_code(o, 0);
    assert_says(o.out, "delta");
    json_decref(run);
    json_decref(model);
}

/* The configuration that a run leaves describes that run. */
static void test_a_run_can_be_repeated_from_what_it_leaves(void **_)
{
    outcome first = BMUF("train", "tiny.ini", "--out", "first", "--set",
                         "train.epochs=1", "--set", "job.seed=7");
    outcome again = BMUF("train", "first/config.ini", "--out", "again1");
    const char *digest = strstr(first.out, "digest ");

    (void)_;
    assert_code(first, 0);
    assert_code(again, 0);
    assert_non_null(digest);
    assert_says(again.out, digest);
}

/* ---- real data ---------------------------------------------------------- */

/* NAME.jsonl with `n` rows of a manifest.tsv: column 1 is the name, 2 the file,
 * the last the text; only rows with `of` in them, `skip` after each. */
static void manifest_of(const char *tsv, const char *key, const char *of,
                        size_t n, size_t skip, const char *name)
{
    static char line[4096], text[1 << 16];
    FILE *in = fopen(tsv, "r");
    size_t used = 0, met = 0, rows = 0;

    assert_non_null(in);
    while (rows < n && fgets(line, sizeof line, in) != NULL) {
        char *file = strchr(line, '\t'), *words = strrchr(line, '\t');

        if (strstr(line, of) == NULL || file == NULL || met++ % (skip + 1) != 0)
            continue;
        *file++ = '\0';
        *strchr(file, '\t') = '\0';
        words[strcspn(words, "\r\n")] = '\0';
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "{\"id\": \"%s\", \"%s\": \"%s\", \"text\": \"%s\"}\n", line, key,
            file, words + 1);
        rows++;
    }
    fclose(in);
    assert_int_equal(rows, n);
    write_text(name, text);
}

/* From real recordings to an error rate, with all verbs. */
static void test_spoken_digits_end_to_end(void **_)
{
    const char *archive = real_data("speech/fsdd/fsdd-wav.tar.xz"), *tsv = NULL;
    json_t *result = NULL;

    (void)_;
    if (archive == NULL)
        skip();
    unpack(archive);
    tsv = real_data("speech/fsdd/manifest.tsv");
    manifest_of(tsv, "audio", "\ttrain\t", 100, 22, "digits.jsonl");
    manifest_of(tsv, "audio", "\ttest\t", 30, 8, "dtest.jsonl");
    assert_code(BMUF("pack", "--audio", "digits.jsonl", "--out", "digits",
                     "--set", "shard.unit_frames=200"),
                0);
    assert_code(BMUF("pack", "--audio", "dtest.jsonl", "--out", "dtest",
                     "--vocab", "digits"),
                0);
    assert_code(BMUF("check", "digits"), 0);
    assert_code(BMUF("check", "dtest"), 0);
    write_text("digits.ini", "[data]\ntrain = digits\n"
                             "[model]\nnet = stack:3 blstm:16 linear\n"
                             "[train]\nepochs = 2\nrate = 0.05\n"
                             "[job]\nworkers = 4\n"
                             "[batch]\nsequences = 3\n"
                             "[sgd]\nclip = 5\nmomentum = 0.5\n"
                             "[schedule]\nkind = constant\n"
                             "[block]\nsteps = 2\n");
    assert_code(BMUF("explain", "digits.ini"), 0);
    assert_code(BMUF("train", "digits.ini", "--dry-run", "--out", "drun"), 0);
    assert_code(BMUF("train", "digits.ini", "--out", "drun", "-n", "2"), 0);
    result =
        parse(BMUF("eval", "drun/model.safetensors", "dtest", "--json").out);
    assert_true(number(result, "sequences") == 30);
    assert_true(number(result, "loss") > 0);
    assert_true(number(result, "ler") > 0 && number(result, "ler") <= 1);
    json_decref(result);
}

static void test_handwritten_lines_end_to_end(void **_)
{
    const char *archive = real_data("handwriting/copiste/copiste-dev.tar.gz");
    const char *tsv = NULL;
    json_t *result = NULL;

    (void)_;
    if (archive == NULL)
        skip();
    unpack(archive);
    tsv = real_data("handwriting/copiste/manifest.tsv");
    manifest_of(tsv, "image", "\tdev\t", 40, 0, "hand.jsonl");
    assert_code(BMUF("pack", "--images", "hand.jsonl", "--out", "hand", "--set",
                     "shard.unit_frames=400"),
                0);
    assert_code(BMUF("check", "hand"), 0);
    assert_says(BMUF("info", "hand").out, "stored as u8");
    write_text("hand.ini", "[data]\ntrain = hand\n"
                           "[model]\nnet = blstm:8 linear\n"
                           "[train]\nepochs = 1\nrate = 0.02\n"
                           "[job]\nworkers = 2\n"
                           "[batch]\nsequences = 2\n"
                           "[sgd]\nclip = 5\nmomentum = 0.5\n"
                           "[schedule]\nkind = constant\n"
                           "[block]\nsteps = 4\n");
    assert_code(BMUF("explain", "hand.ini"), 0);
    assert_code(BMUF("train", "hand.ini", "--out", "hrun"), 0);
    result =
        parse(BMUF("eval", "hrun/model.safetensors", "hand", "--json").out);
    assert_true(number(result, "sequences") == 40);
    assert_true(number(result, "words") > 40);
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_become_shards),
        cmocka_unit_test(test_shards_are_replaced_by_force_only),
        cmocka_unit_test(test_what_a_killed_packing_left_goes_by_force),
        cmocka_unit_test(test_an_id_has_a_longest_length),
        cmocka_unit_test(test_shards_end_by_size),
        cmocka_unit_test(test_words_can_be_the_units),
        cmocka_unit_test(test_unknown_symbols_are_counted),
        cmocka_unit_test(test_recordings_that_are_none_are_left_out),
        cmocka_unit_test(test_line_images_become_shards),
        cmocka_unit_test(test_ready_made_features_become_shards),
        cmocka_unit_test(test_check_knows_what_a_stride_leaves),
        cmocka_unit_test(test_explain_prints_what_formulas_say),
        cmocka_unit_test(test_explain_tells_what_else_is_done_with_blocks),
        cmocka_unit_test(test_explain_counts_bytes_of_an_exchange),
        cmocka_unit_test(test_explain_counts_bytes_of_codes),
        cmocka_unit_test(test_explain_counts_padding),
        cmocka_unit_test(test_explain_refuses_and_warns),
        cmocka_unit_test(test_a_model_is_trained_and_described),
        cmocka_unit_test(test_a_run_can_be_repeated_from_what_it_leaves),
        cmocka_unit_test(test_spoken_digits_end_to_end),
        cmocka_unit_test(test_handwritten_lines_end_to_end),
    };
    return cmocka_run_group_tests_name("verbs", tests, make_corpus,
                                       folder_remove);
}
