/*
 * The interface for other programs: what is in memory gives the same words as a
 * file, on any thread; images and features, too. What cannot be used is named,
 * and the transcriber goes on.
 */
#include "recognise/best_path_words.h"
#include "recognise/priors.h"
#include "recognise/transcriber.h"
#include "recognise/transcriber_parts.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <png.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 21, FORKS = 4 };

static bm_transcriber *open_model(const char *name)
{
    bm_transcriber *t = NULL;

    assert_ok(bm_transcriber_open(&t, in_folder(name), NULL));
    return t;
}

static bm_transcript *hear(bm_transcriber *t, const char *name)
{
    bm_transcript *text = NULL;

    assert_ok(bm_transcriber_file(t, in_folder(name), NULL, &text));
    return text;
}

/* Bit for bit. */
static bool same(const bm_transcript *a, const bm_transcript *b)
{
    const bm_reading *x = a->readings, *y = b->readings;
    bool equal = a->n == 1 && b->n == 1 && strcmp(x->text, y->text) == 0 &&
                 x->score == y->score && x->n_words == y->n_words &&
                 a->length == b->length && a->height == b->height;

    for (size_t i = 0; equal && i < x->n_words; i++)
        equal = strcmp(x->words[i].text, y->words[i].text) == 0 &&
                x->words[i].start == y->words[i].start &&
                x->words[i].end == y->words[i].end &&
                x->words[i].confidence == y->words[i].confidence;
    return equal;
}

/* ---- recordings ---------------------------------------------------------- */

static void test_samples_give_the_words_of_their_file(void **_)
{
    static float x[16000];
    bm_transcriber *t = open_model("speech");
    bm_transcriber_about about = bm_transcriber_describe(t);

    (void)_;
    assert_int_equal(about.kind, BM_RECORDINGS);
    assert_int_equal(about.rate, 8000);
    assert_int_equal(about.features, 8);
    assert_true(near(about.frame_shift, 0.01, 1e-12));
    assert_string_equal(about.file, in_folder("speech/model-best.safetensors"));
    for (int i = 0; i < N; i++) {
        char name[32];
        bm_transcript *file = NULL, *memory = NULL;
        size_t n = 0;

        snprintf(name, sizeof name, "test-%d.wav", i);
        n = read_samples(name, x, 16000);
        file = hear(t, name);
        assert_ok(bm_transcriber_samples(t, x, n, 8000, &memory));
        assert_true(same(file, memory));
        assert_true(near(file->length, (double)n / 8000, 1e-9));
        bm_transcript_free(file);
        bm_transcript_free(memory);
    }
    bm_transcriber_close(t);
}

typedef struct listener {
    bm_transcriber *t;
    bm_transcript *heard[N];
    bm_status status;
} listener;

static void *listen(void *self)
{
    listener *l = self;

    for (int i = 0; i < N && l->status == BM_OK; i++) {
        char path[200];

        snprintf(path, sizeof path, "%s/test-%d.wav",
                 bm_transcriber_describe(l->t).file, i);
        snprintf(strstr(path, "/speech/"), 32, "/test-%d.wav", i);
        l->status = bm_transcriber_file(l->t, path, NULL, &l->heard[i]);
    }
    return NULL;
}

static void test_forks_hear_the_same_on_all_threads(void **_)
{
    bm_transcriber *t = open_model("speech");
    listener all[FORKS] = {{0}};
    pthread_t threads[FORKS];

    (void)_;
    all[0].t = t;
    for (size_t k = 1; k < FORKS; k++)
        assert_ok(bm_transcriber_fork(&all[k].t, t));
    for (size_t k = 0; k < FORKS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, listen, &all[k]), 0);
    for (size_t k = 0; k < FORKS; k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    for (size_t k = FORKS; k-- > 0;) {
        assert_ok(all[k].status);
        for (int i = 0; i < N; i++)
            assert_true(same(all[k].heard[i], all[0].heard[i]));
        for (int i = 0; k > 0 && i < N; i++)
            bm_transcript_free(all[k].heard[i]);
        if (k > 0)
            bm_transcriber_close(all[k].t);
    }
    for (int i = 0; i < N; i++)
        bm_transcript_free(all[0].heard[i]);
    bm_transcriber_close(t);
}

/* Fails with the status and words in the message. */
#define assert_status(call, code, words)                                       \
    do {                                                                       \
        assert_int_equal((call), (code));                                      \
        assert_says(bm_last_message(), (words));                               \
    } while (0)

static void test_after_a_fault_the_transcriber_goes_on(void **_)
{
    float x[400] = {0};
    bm_transcriber *t = open_model("speech");
    bm_transcript *before = hear(t, "test-0.wav"), *after = NULL, *none = NULL;

    (void)_;
    assert_status(bm_transcriber_samples(t, x, 0, 8000, &none), BM_ERR_FORMAT,
                  "0.000 s: shorter than one window");
    assert_status(bm_transcriber_samples(t, x, 199, 8000, &none), BM_ERR_FORMAT,
                  "shorter than one window of 25 ms");
    assert_status(bm_transcriber_samples(t, x, 400, 0, &none), BM_ERR_ARG,
                  "0 Hz is not a sampling rate");
    x[7] = NAN;
    assert_status(bm_transcriber_samples(t, x, 400, 8000, &none), BM_ERR_FORMAT,
                  "sample 7 is NaN or infinite");
    assert_status(bm_transcriber_file(t, in_folder("no.wav"), NULL, &none),
                  BM_ERR_MISSING, "no.wav");
    assert_status(bm_transcriber_image(t, (unsigned char[]){0}, 1, 1, &none),
                  BM_ERR_FORMAT, "trained on recordings, not on line images");
    assert_status(bm_transcriber_features(t, x, 1, 4, &none), BM_ERR_FORMAT,
                  "trained on recordings, not on feature files");
    assert_null(none);
    after = hear(t, "test-0.wav");
    assert_true(same(before, after));
    bm_transcript_free(before);
    bm_transcript_free(after);
    bm_transcriber_close(t);
}

/* ---- models -------------------------------------------------------------- */

/* Copies a model with another text in its header. */
static void edit_model(const char *to, const char *text, const char *by)
{
    size_t size = 0, length = 0, n = 0;
    char *file = slurp(in_folder("speech/model.safetensors"), &size);
    char *header = zeros(size, 1), *found = NULL, *out = zeros(2 * size, 1);

    for (size_t i = 8; i-- > 0;)
        length = length << 8 | (unsigned char)file[i];
    memcpy(header, file + 8, length);
    found = strstr(header, text);
    assert_non_null(found);
    n = (size_t)sprintf(out + 8, "%.*s%s%s", (int)(found - header), header, by,
                        found + strlen(text));
    while (n % 8 != 0)
        out[8 + n++] = ' ';
    for (size_t i = 0; i < 8; i++)
        out[i] = (char)(n >> (8 * i));
    memcpy(out + 8 + n, file + 8 + length, size - 8 - length);
    spill(in_folder(to), out, size - length + n);
    free(file);
    free(header);
    free(out);
}

static void test_models_that_cannot_transcribe_are_refused(void **_)
{
    bm_transcriber *t = NULL;
    bm_transcript *none = NULL;

    (void)_;
    assert_int_equal(bm_transcriber_open(&t, in_folder("nowhere"), NULL),
                     BM_ERR_MISSING);
    assert_status(bm_transcriber_open(&t, in_folder("tiny.ini"), NULL),
                  BM_ERR_FORMAT, "not a model");
    edit_model("wrong.safetensors", "\\\"rate\\\": 8000", "\\\"rate\\\": 0");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "at which rate");
    edit_model("wrong.safetensors", "\\\"mels\\\": 8", "\\\"mels\\\": 9");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "takes 8 features per frame");
    edit_model("wrong.safetensors", "\\\"mels\\\": 8", "\\\"mels\\\": -8");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "features.mels");
    assert_null(t);

    /* An older file, which does not say how features were made. */
    edit_model("old.safetensors", "\\\"kind\\\": \\\"audio\\\"",
               "\\\"made\\\": \\\"audio\\\"");
    t = open_model("old.safetensors");
    assert_int_equal(bm_transcriber_describe(t).kind, BM_PACKED_ONLY);
    assert_status(bm_transcriber_file(t, in_folder("test-0.wav"), NULL, &none),
                  BM_ERR_FORMAT, "decode a packed set");
    bm_transcriber_close(t);

    /* Of classes of images, as MNIST's. */
    edit_model("mnist.safetensors", "\\\"kind\\\": \\\"audio\\\"",
               "\\\"kind\\\": \\\"idx\\\"");
    t = open_model("mnist.safetensors");
    assert_status(bm_transcriber_file(t, in_folder("test-0.wav"), NULL, &none),
                  BM_ERR_FORMAT,
                  "trained on what bmuf pack --idx makes, which is decoded "
                  "only as a packed set");
    bm_transcriber_close(t);
}

/* Blanks are between all labels and at both ends; class 1 is the space. */
static void test_priors_are_the_frequencies_of_labels(void **_)
{
    static const char symbols[] = "\b abc";
    double counts[5] = {0}, all = 0;
    bm_vocab *vocab = NULL, *other = NULL;
    float *priors = NULL;
    bm_transcriber_settings set = bm_transcriber_defaults();
    bm_transcriber *t = NULL;
    bm_transcript *plain = NULL, *heard = NULL;

    (void)_;
    for (size_t i = 0; i < 42; i++) {
        counts[0] += 1;
        for (const char *c = speech_text(i); *c != '\0'; c++) {
            counts[strchr(symbols, *c) - symbols]++;
            counts[0]++;
        }
    }
    counts[0] *= 0.5;
    for (size_t c = 0; c < 5; c++)
        all += counts[c];
    assert_ok(bm_vocab_read(&vocab, in_folder("train"), false));
    assert_ok(bm_priors_read(&priors, in_folder("train"), vocab, 0.5));
    for (size_t c = 0; c < 5; c++)
        assert_true(near((double)priors[c], log(counts[c] / all), 1e-6));
    free(priors);
    assert_ok(bm_vocab_new(&other, false));
    assert_status(bm_priors_read(&priors, in_folder("train"), other, 1),
                  BM_ERR_FORMAT, "another vocabulary than the model");
    assert_status(bm_priors_read(&priors, in_folder("train"), vocab, 0),
                  BM_ERR_ARG, "the blank scale is greater than 0, not 0");
    bm_vocab_free(other);
    bm_vocab_free(vocab);

    /* Every class has a prior below 1, so that scores rise. */
    set.beam = 20;
    assert_ok(bm_transcriber_open(&t, in_folder("speech"), &set));
    plain = hear(t, "test-0.wav");
    bm_transcriber_close(t);
    set.priors = in_folder("train");
    assert_ok(bm_transcriber_open(&t, in_folder("speech"), &set));
    heard = hear(t, "test-0.wav");
    bm_transcriber_close(t);
    assert_true(heard->readings[0].score > plain->readings[0].score);
    bm_transcript_free(plain);
    bm_transcript_free(heard);
}

/* White space at the ends and between words is as in texts: io/vocab.h. */
static void test_a_text_has_no_needless_spaces(void **_)
{
    enum { T = 9, C = 4 };
    static const int path[T] = {1, 2, 0, 1, 0, 1, 3, 0, 1}; /* " a  b " */
    const bm_frame_places places = {.step = 1, .length = T};
    bm_best_path memory = {0};
    bm_hypothesis found;
    bm_reading r;
    bm_vocab *vocab = NULL;
    float y[T * C];

    (void)_;
    for (size_t i = 0; i < T * C; i++)
        y[i] = path[i / C] == (int)(i % C) ? 0 : -9;
    assert_ok(bm_vocab_parse(&vocab, "<blank>\n<space>\na\nb\n", false));
    assert_ok(bm_best_path_words(&memory, y, T, C, 1, &found));
    assert_int_equal(found.n_labels, 6);
    assert_ok(bm_reading_make(&r, &found, vocab, NULL, &places));
    assert_string_equal(r.text, "a b");
    assert_int_equal(r.n_words, 2);
    bm_reading_free(&r);
    bm_best_path_free(&memory);
    bm_vocab_free(vocab);
}

/* ---- line images --------------------------------------------------------- */

enum { GLYPH = 12, HEIGHT = 16, MOST_GLYPHS = 12 };

/* The ink of a letter: above, below, or both with a gap. */
static bool has_ink(char letter, int x, int y)
{
    if (x < 2 || x >= GLYPH - 2)
        return false;
    return letter == 'a'   ? y < HEIGHT / 2
           : letter == 'b' ? y >= HEIGHT / 2
           : letter == 'c' ? y < 4 || y >= 12
                           : false;
}

/* grey <- a line of glyphs, `scale` times as large; returns its width. */
static size_t draw(const char *text, int scale, unsigned char *grey)
{
    size_t width = strlen(text) * GLYPH * (size_t)scale;

    assert_true(strlen(text) <= MOST_GLYPHS);
    for (int y = 0; y < HEIGHT * scale; y++)
        for (size_t x = 0; x < width; x++) {
            size_t column = x / (size_t)scale;

            grey[(size_t)y * width + x] =
                has_ink(text[column / GLYPH], (int)(column % GLYPH), y / scale)
                    ? 0
                    : 255;
        }
    return width;
}

static void write_line(const char *name, const char *text, int scale)
{
    static unsigned char grey[4 * MOST_GLYPHS * GLYPH * HEIGHT];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .format = PNG_FORMAT_GRAY,
                     .height = (png_uint_32)(HEIGHT * scale)};

    png.width = (png_uint_32)draw(text, scale, grey);
    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, grey, 0, NULL));
}

static void write_lines(void)
{
    static char manifest[42 * 100];
    size_t n = 0;

    for (size_t i = 0; i < 42; i++) {
        char name[32];

        snprintf(name, sizeof name, "line-%zu.png", i);
        write_line(name, speech_text(i), 1);
        n += (size_t)sprintf(
            manifest + n,
            "{\"id\": \"line-%zu\", \"image\": \"%s\", \"text\": \"%s\"}\n", i,
            name, speech_text(i));
    }
    write_text("lines.jsonl", manifest);
}

/* At twice the size, places are twice as far. */
static void test_images_give_words_with_their_places(void **_)
{
    static unsigned char grey[4 * MOST_GLYPHS * GLYPH * HEIGHT];
    bm_transcriber *t = open_model("lines");
    size_t right = 0;

    (void)_;
    assert_int_equal(bm_transcriber_describe(t).kind, BM_IMAGES);
    for (size_t i = 0; i < N; i++) {
        char name[32];
        bm_transcript *file = NULL, *memory = NULL, *large = NULL;
        size_t width = draw(speech_text(i), 1, grey);

        snprintf(name, sizeof name, "line-%zu.png", i);
        file = hear(t, name);
        assert_ok(bm_transcriber_image(t, grey, width, HEIGHT, &memory));
        assert_true(same(file, memory));
        assert_true(file->length == (double)width && file->height == HEIGHT);
        right += strcmp(file->readings[0].text, speech_text(i)) == 0;
        width = draw(speech_text(i), 2, grey);
        assert_ok(bm_transcriber_image(t, grey, width, 2 * HEIGHT, &large));
        for (size_t k = 0; k < file->readings[0].n_words; k++) {
            const bm_heard_word *w = &file->readings[0].words[k];
            const bm_heard_word *l = &large->readings[0].words[k];

            assert_true(near(l->start, 2 * w->start, 1e-9));
            assert_true(near(l->end, 2 * w->end, 1e-9));
            assert_true(w->end > w->start && w->end <= file->length);
        }
        bm_transcript_free(file);
        bm_transcript_free(memory);
        bm_transcript_free(large);
    }
    assert_true(right > N / 2); /* else little is tested */
    bm_transcriber_close(t);
}

/* The next attribute behind `at` of this name, as a number. */
static double attribute(const char *at, const char *name)
{
    char wanted[32];
    double value = 0;

    snprintf(wanted, sizeof wanted, " %s=\"", name);
    at = strstr(at, wanted);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(wanted), "%lf\"", &value), 1);
    return value;
}

/* Fails unless tags are well-formed: each is closed by its own name, and
 * attributes are in quotes. */
static void assert_xml(const char *at)
{
    char open[16][32];
    size_t depth = 0;

    at = strstr(at, "?>");
    assert_non_null(at);
    while ((at = strchr(at, '<')) != NULL) {
        size_t name = strcspn(at + 1, " />\n"), end = strcspn(at, ">");
        size_t quotes = 0;

        assert_true(at[end] == '>');
        for (size_t i = 0; i < end; i++)
            quotes += at[i] == '"';
        assert_true(quotes % 2 == 0);
        if (at[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_true(strlen(open[depth]) == end - 2 &&
                        strncmp(open[depth], at + 2, end - 2) == 0);
        } else if (at[end - 1] != '/') {
            assert_true(depth < 16 && name < 32);
            snprintf(open[depth++], 32, "%.*s", (int)name, at + 1);
        }
        at += end;
    }
    assert_int_equal(depth, 0);
}

static void test_alto_has_the_words_of_an_image(void **_)
{
    outcome o = BMUF("decode", "lines", "line-0.png", "--format", "alto");
    outcome many = BMUF("decode", "lines", "lines.jsonl", "--out", "pages",
                        "--format", "alto");
    bm_transcriber *t = open_model("lines");
    bm_transcript *heard = hear(t, "line-0.png");
    const bm_reading *r = &heard->readings[0];
    const char *at = o.out;

    (void)_;
    assert_code(o, 0);
    assert_code(many, 0);
    assert_xml(o.out);
    assert_says(o.out, "<alto xmlns=\"http://www.loc.gov/standards/alto/ns-v4#"
                       "\">");
    assert_says(o.out, "<fileName>line-0.png</fileName>");
    assert_true(attribute(strstr(o.out, "<Page"), "WIDTH") == heard->length);
    assert_true(r->n_words > 0);
    for (size_t i = 0; i < r->n_words; i++) {
        char content[64];

        at = strstr(at, "<String");
        assert_non_null(at);
        snprintf(content, sizeof content, "CONTENT=\"%s\"", r->words[i].text);
        assert_says(at, content);
        assert_true(fabs(attribute(at, "HPOS") - r->words[i].start) <= 0.5);
        assert_true(attribute(at, "HEIGHT") == HEIGHT);
        assert_true(near(attribute(at, "WC"), r->words[i].confidence, 6e-4));
        at++;
    }
    assert_null(strstr(at, "<String"));
    bm_transcript_free(heard);
    bm_transcriber_close(t);
}

static void test_images_and_their_packed_set_agree(void **_)
{
    outcome packed = BMUF("decode", "lines", "packed-lines", "--nbest", "3");
    outcome files = BMUF("decode", "lines", "lines.jsonl", "--nbest", "3");
    outcome trn = BMUF("decode", "lines", "packed-lines", "--format", "trn");
    outcome hyp = BMUF("eval", "lines", "packed-lines", "--hyp", "-");
    outcome again = BMUF("pack", "--images", "lines.jsonl", "--out", "again",
                         "--vocab", "lines");

    (void)_;
    assert_code(again, 0);
    assert_says(again.err, "as lines: features.height = 16");
    again = BMUF("decode", "lines", "again", "--nbest", "3");
    assert_string_equal(again.out, files.out);
    assert_code(packed, 0);
    assert_string_equal(packed.out, files.out);
    assert_string_equal(trn.out, hyp.out);
    assert_fails(BMUF("decode", "lines", "line-0.png", "--format", "ctm"), 64,
                 "--format ctm needs positions in s", "line images");
    assert_fails(BMUF("decode", "lines", "line-0.png", "--channel", "1"), 64,
                 "--channel applies only to recordings, but this model reads "
                 "line images");
}

/* One message, and how to pack them. */
static void test_pages_and_lists_of_pylaia_are_to_be_packed(void **_)
{
    (void)_;
    write_text("page.xml", "<?xml version=\"1.0\"?>\n<PcGts/>\n");
    assert_fails(BMUF("decode", "lines", "page.xml"), 65,
                 "page.xml is a page in XML, not a manifest; pack it and give "
                 "the packed set: bmuf pack --images page.xml --out DIR");
    assert_fails(BMUF("align", "lines", "page.xml"), 65,
                 "page.xml is a page in XML, not a manifest; pack it");
    write_text("tr.txt", "# set\nline-0 a <space> b\nline-1 b\n");
    assert_fails(BMUF("decode", "lines", "tr.txt"), 65,
                 "there is no line-0 a <space> b; pack a list of PyLaia first: "
                 "bmuf pack --images LIST --image-dir DIR");
}

static void test_comments_of_lists_are_no_inputs(void **_)
{
    outcome o;

    (void)_;
    write_text("some.txt", "# two\nline-0.png\n\n#line-2.png\nline-1.png\n");
    o = BMUF("decode", "lines", "some.txt");
    assert_code(o, 0);
    assert_string_equal(
        o.out, BMUF("decode", "lines", "line-0.png", "line-1.png").out);
}

/* Not a message for each of its sequences. */
static void test_a_set_without_places_is_one_fault(void **_)
{
    outcome o = BMUF("decode", "lines", "packed-lines", "line-0.png",
                     "--format", "alto", "--out", "places");

    (void)_;
    assert_code(o, 65);
    assert_int_equal(count_of(o.err, "packed-lines: this --format needs "
                                     "positions in pixels, but a packed set of "
                                     "this kind has them in frames"),
                     1);
    assert_says(o.err, "1 of 2 inputs could not be decoded");
}

/* A stroke from the lower left to the upper right, or mirrored, and the mean
 * place of its ink in the frames, which are columns of half the size. */
static void check_slanted(double tangent)
{
    enum { W = 300, H = 100, STROKES = 3, WIDE = 6 };
    static const char description[] =
        "{\"kind\": \"images\", \"height\": 50, \"columns\": 1, \"pad\": 3, "
        "\"invert\": \"no\", \"slant\": true}";
    static uint8_t grey[W * H];
    const bm_line_image image = {grey, W, H};
    bm_front_end *f = NULL;
    bm_input_frames x = {0};
    double ink = 0, place = 0, all = 0, middle = 0;

    memset(grey, 255, sizeof grey);
    for (int y = 0; y < H; y++)
        for (int k = 0; k < STROKES * WIDE; k++) {
            int stroke = 60 + 80 * (k / WIDE) + k % WIDE;
            int column = stroke + (int)lround(tangent * (H / 2.0 - y - 0.5));

            grey[y * W + column] = 0;
            all += 1;
            middle += column + 0.5;
        }
    middle /= all;
    all = 0;
    assert_ok(bm_front_end_open(&f, description, 50, 0));
    assert_ok(bm_front_end_image(f, &image, &x));
    for (size_t t = 0; t < x.n; t++)
        for (size_t i = 0; i < x.dim; i++) {
            ink = (double)x.x[t * x.dim + i];
            all += ink;
            place += ink * ((double)t + 0.5 - x.lead) * x.step;
        }
    assert_true(fabs(place / all - middle) < 0.5);
    bm_front_end_close(f);
}

static void test_places_of_slanted_strokes_are_those_of_the_image(void **_)
{
    (void)_;
    check_slanted(0);
    check_slanted(tan(3.14159265 / 6));
    check_slanted(-tan(3.14159265 / 9));
}

/* ---- from right to left -------------------------------------------------- */

/* The same words with a Hebrew letter for a, and 1 and 2 for b and c. */
static void to_hebrew(const char *text, char *out)
{
    for (; *text != '\0'; text++)
        out += sprintf(out, "%s",
                       *text == 'a'   ? "\xd7\x90"
                       : *text == 'b' ? "1"
                       : *text == 'c' ? "2"
                                      : " ");
}

static bool is_digit(char letter)
{
    return letter == 'b' || letter == 'c';
}

/* As it is seen from left to right: all turned around but the numbers. */
static void to_seen(const char *text, char *out)
{
    size_t n = strlen(text), from = 0, to = 0;

    for (; from < n; from = to) {
        for (to = from + 1;
             to < n && is_digit(text[from]) && is_digit(text[to]);)
            to++;
        memcpy(out + n - to, text + from, to - from);
    }
    out[n] = '\0';
}

static void write_hebrew(void)
{
    static char manifest[42 * 160];
    size_t n = 0;

    for (size_t i = 0; i < 42; i++) {
        char name[32], text[64], seen[64];

        snprintf(name, sizeof name, "hebrew-%zu.png", i);
        to_seen(speech_text(i), seen);
        to_hebrew(speech_text(i), text);
        write_line(name, seen, 1);
        n += (size_t)sprintf(
            manifest + n,
            "{\"id\": \"line-%zu\", \"image\": \"%s\", \"text\": \"%s\"}\n", i,
            name, text);
    }
    write_text("hebrew.jsonl", manifest);
}

/* Texts are as they are written, and words are where they are seen. */
static void test_lines_from_right_to_left_are_read(void **_)
{
    bm_transcriber *t = open_model("hebrew");
    size_t right = 0, numbers = 0;

    (void)_;
    for (size_t i = 0; i < N; i++) {
        char name[32], text[64];
        bm_transcript *heard = NULL;
        const bm_reading *r = NULL;
        double edge = 0;

        snprintf(name, sizeof name, "hebrew-%zu.png", i);
        to_hebrew(speech_text(i), text);
        heard = hear(t, name);
        r = &heard->readings[0];
        edge = heard->length;
        for (size_t k = 0; k < r->n_words; k++) {
            const bm_heard_word *w = &r->words[k];

            assert_true(w->start >= 0 && w->start < w->end && w->end <= edge);
            edge = w->start;
        }
        if (strcmp(r->text, text) == 0) {
            right++;
            numbers += strstr(text, "12") != NULL || strstr(text, "21") != NULL;
        }
        bm_transcript_free(heard);
    }
    assert_true(right > N / 2 && numbers > 0); /* else little is tested */
    bm_transcriber_close(t);
}

static void test_sets_from_right_to_left_agree_with_files(void **_)
{
    outcome packed = BMUF("decode", "hebrew", "packed-hebrew"), o;
    outcome files = BMUF("decode", "hebrew", "hebrew.jsonl");
    outcome hyp = BMUF("eval", "hebrew", "packed-hebrew", "--hyp", "-");
    outcome trn = BMUF("decode", "hebrew", "packed-hebrew", "--format", "trn");

    (void)_;
    assert_code(packed, 0);
    assert_string_equal(packed.out, files.out);
    assert_string_equal(trn.out, hyp.out);
    o = BMUF("align", "hebrew", "packed-hebrew", "--level", "words");
    assert_code(o, 0);
    assert_says(o.out, " 12 ");
    assert_says(o.out, "line-6 1 ");
    o = BMUF("pack", "--images", "hebrew.jsonl", "--out", "left", "--set",
             "features.height=16", "--set", "features.right_to_left=no");
    assert_code(o, 0);
    assert_null(strstr(o.err, "right to left"));
    assert_fails(BMUF("eval", "hebrew", "left"), 65,
                 "features.right_to_left is no, should be yes: --set "
                 "features.right_to_left=yes",
                 "");
    assert_code(BMUF("pack", "--images", "lines.jsonl", "--out", "like",
                     "--vocab", "packed-hebrew", "--max-unknown", "100",
                     "--set", "features.height=16"),
                0);
    assert_code(BMUF("decode", "hebrew", "like"), 0);
    assert_code(BMUF("pack", "--images", "hebrew.jsonl", "--out", "unlike",
                     "--vocab", "lines", "--max-unknown", "100", "--set",
                     "features.height=16", "--set",
                     "features.right_to_left=yes"),
                0);
    assert_fails(BMUF("eval", "lines", "unlike"), 65,
                 "features.right_to_left is yes, should be no: --set "
                 "features.right_to_left=no",
                 "");
}

/* Words of a lexicon are spelled as they are seen. */
static void test_numbers_of_a_lexicon_are_found_from_right_to_left(void **_)
{
    outcome o;

    (void)_;
    write_text("words.txt", "12\n2\n\xd7\x90\n");
    o = BMUF("decode", "hebrew", "hebrew-6.png", "--lexicon", "words.txt");
    assert_code(o, 0);
    assert_string_equal(o.out, "12\n");
    o = BMUF("decode", "hebrew", "hebrew-6.png", "--hot-word", "12", "--beam",
             "10");
    assert_code(o, 0);
    assert_string_equal(o.out, "12\n");
}

/* ---- features ------------------------------------------------------------ */

enum { DIM = 6 };

/* Frames that say which letter they are of. */
static size_t make_features(const char *text, float *x)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        for (int i = 0; i < 6; i++, n++)
            for (size_t d = 0; d < DIM; d++)
                x[n * DIM + d] =
                    (float)(*text != ' ' && (size_t)(*text - 'a') == d % 3 &&
                            i < 5);
    return n;
}

static void write_npy(const char *name, const float *x, size_t n)
{
    static const char magic[] = "\x93NUMPY\1\0v"; /* a header of 118 bytes */
    char file[8192];
    int size = 0;

    memcpy(file, magic, sizeof magic);
    memset(file + 10, ' ', 118);
    size = snprintf(file + 10, 118,
                    "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, "
                    "%d), }",
                    n, DIM);
    file[10 + size] = ' ';
    file[127] = '\n';
    memcpy(file + 128, x, n * DIM * sizeof *x);
    write_bytes(name, file, 128 + n * DIM * sizeof *x);
}

static void write_features(void)
{
    static char manifest[42 * 100];
    float x[MOST_GLYPHS * 6 * DIM];
    size_t used = 0;

    for (size_t i = 0; i < 42; i++) {
        char name[32];

        snprintf(name, sizeof name, "f-%zu.npy", i);
        write_npy(name, x, make_features(speech_text(i), x));
        used += (size_t)sprintf(
            manifest + used,
            "{\"id\": \"f-%zu\", \"feats\": \"%s\", \"text\": \"%s\"}\n", i,
            name, speech_text(i));
    }
    write_text("feats.jsonl", manifest);
}

static void test_features_give_the_words_of_their_file(void **_)
{
    float x[MOST_GLYPHS * 6 * DIM];
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;
    outcome packed = BMUF("decode", "feats", "packed-feats", "--nbest", "2");
    outcome files = BMUF("decode", "feats", "feats.jsonl", "--nbest", "2");

    (void)_;
    assert_int_equal(bm_transcriber_describe(t).kind, BM_FEATURE_FILES);
    assert_true(near(bm_transcriber_describe(t).frame_shift, 0.02, 1e-12));
    for (size_t i = 0; i < N; i++) {
        size_t n = make_features(speech_text(i), x);
        char name[32];
        bm_transcript *file = NULL, *memory = NULL;

        snprintf(name, sizeof name, "f-%zu.npy", i);
        file = hear(t, name);
        assert_ok(bm_transcriber_features(t, x, n, DIM, &memory));
        assert_true(same(file, memory));
        bm_transcript_free(file);
        bm_transcript_free(memory);
    }
    assert_status(bm_transcriber_features(t, x, 2, DIM - 1, &none),
                  BM_ERR_FORMAT,
                  "5 numbers per frame, but the model was "
                  "trained on 6");
    bm_transcriber_close(t);
    assert_code(packed, 0);
    assert_string_equal(packed.out, files.out);
}

/* Frames of a program that makes its own. */
static void test_outputs_that_are_not_finite_are_no_words(void **_)
{
    float x[4 * DIM];
    const bm_input_frames frames = {.x = x, .n = 4, .dim = DIM, .step = 1};
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;

    (void)_;
    for (size_t i = 0; i < 4 * DIM; i++)
        x[i] = i == 0 ? NAN : 1;
    assert_status(bm_transcriber_frames(t, &frames, &none), BM_ERR_FORMAT,
                  "the network's outputs are not finite; are the features made "
                  "as the model's were?");
    assert_null(none);
    bm_transcriber_close(t);
}

static void test_arrays_need_their_ending(void **_)
{
    float x[MOST_GLYPHS * 6 * DIM];
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;
    outcome o;

    (void)_;
    write_npy("array.bin", x, make_features("abc", x));
    assert_status(bm_transcriber_file(t, in_folder("array.bin"), NULL, &none),
                  BM_ERR_FORMAT,
                  "array.bin is a NumPy array, whose name must end in .npy or "
                  ".npz");
    bm_transcriber_close(t);
    o = command_run(
        &(command){.words = (const char *const[]){"decode", "feats", "-", NULL},
                   .in = "array.bin"});
    assert_code(o, 65);
    assert_says(o.err, "stdin takes none");
}

/* Each third frame of seven. */
static void test_places_are_frames_of_files_without_a_rate(void **_)
{
    static const char description[] =
        "{\"kind\": \"features\", \"dim\": 6, \"shift_ms\": 0, "
        "\"subsample\": 3, \"normalise\": \"none\"}";
    float x[7 * DIM] = {0};
    bm_front_end *f = NULL;
    bm_input_frames out = {0};

    (void)_;
    assert_ok(bm_front_end_open(&f, description, DIM, 0));
    assert_ok(bm_front_end_features(f, x, 7, DIM, &out));
    assert_int_equal(out.n, 3);
    assert_true(out.step == 3 && out.lead == 0 && out.length == 7);
    bm_front_end_close(f);
}

/* ---- setup --------------------------------------------------------------- */

static void make_model(const char *kind, const char *manifest, const char *set,
                       const char *setting, const char *run)
{
    char data[64], out[64];

    assert_code(BMUF("pack", kind, manifest, "--out", set, "--set", setting,
                     "--set", "shard.unit_frames=100"),
                0);
    snprintf(data, sizeof data, "data.train=%s", set);
    snprintf(out, sizeof out, "%s", run);
    assert_code(BMUF("train", "tiny.ini", "--out", out, "--set", data, "--set",
                     "data.dev=", "--set", "train.epochs=40", "--set",
                     "block.frames_total=2000", "--set",
                     "schedule.kind=constant"),
                0);
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "speech", "--set",
                     "train.epochs=8", "--set", "schedule.kind=constant"),
                0);
    write_lines();
    write_hebrew();
    write_features();
    make_model("--images", "lines.jsonl", "packed-lines", "features.height=16",
               "lines");
    make_model("--images", "hebrew.jsonl", "packed-hebrew",
               "features.height=16", "hebrew");
    make_model("--features", "feats.jsonl", "packed-feats",
               "features.subsample=2", "feats");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_give_the_words_of_their_file),
        cmocka_unit_test(test_forks_hear_the_same_on_all_threads),
        cmocka_unit_test(test_after_a_fault_the_transcriber_goes_on),
        cmocka_unit_test(test_models_that_cannot_transcribe_are_refused),
        cmocka_unit_test(test_priors_are_the_frequencies_of_labels),
        cmocka_unit_test(test_a_text_has_no_needless_spaces),
        cmocka_unit_test(test_images_give_words_with_their_places),
        cmocka_unit_test(test_places_of_slanted_strokes_are_those_of_the_image),
        cmocka_unit_test(test_alto_has_the_words_of_an_image),
        cmocka_unit_test(test_images_and_their_packed_set_agree),
        cmocka_unit_test(test_pages_and_lists_of_pylaia_are_to_be_packed),
        cmocka_unit_test(test_comments_of_lists_are_no_inputs),
        cmocka_unit_test(test_a_set_without_places_is_one_fault),
        cmocka_unit_test(test_lines_from_right_to_left_are_read),
        cmocka_unit_test(test_sets_from_right_to_left_agree_with_files),
        cmocka_unit_test(
            test_numbers_of_a_lexicon_are_found_from_right_to_left),
        cmocka_unit_test(test_features_give_the_words_of_their_file),
        cmocka_unit_test(test_outputs_that_are_not_finite_are_no_words),
        cmocka_unit_test(test_arrays_need_their_ending),
        cmocka_unit_test(test_places_are_frames_of_files_without_a_rate),
    };

    return cmocka_run_group_tests_name("transcriber", tests, prepare,
                                       folder_remove);
}
