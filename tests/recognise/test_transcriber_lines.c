/*
 * Line images by the interface for other programs and bmuf decode: words are
 * where they are seen, from left to right and from right to left.
 */
#include "recognise/transcriber.h"
#include "tests/recognise/transcribing.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- line images --------------------------------------------------------- */

enum { GLYPH = 12, HEIGHT = 16 };

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
        file = transcribe(t, name);
        assert_ok(bm_transcriber_image(t, grey, width, HEIGHT, &memory));
        assert_true(same(file, memory));
        assert_true(file->length == (double)width && file->height == HEIGHT);
        right += strcmp(file->readings[0].text, speech_text(i)) == 0;
        width = draw(speech_text(i), 2, grey);
        assert_ok(bm_transcriber_image(t, grey, width, 2 * HEIGHT, &large));
        for (size_t k = 0; k < file->readings[0].n_words; k++) {
            const bm_transcript_word *w = &file->readings[0].words[k];
            const bm_transcript_word *l = &large->readings[0].words[k];

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

/* Its header is a text, and so are its pixels if none is black; a list may begin
 * with the same letters. */
static void test_portable_maps_come_from_stdin(void **_)
{
    static unsigned char file[4 * MOST_GLYPHS * GLYPH * HEIGHT];
    static const char *const headers[] = {
        "P5 %zu %d 255\n", "P5\n%zu %d\n255\n", "P5\n# by hand\n%zu %d 255\n"};
    command c = {.words = (const char *const[]){"decode", "lines", "-",
                                                "--format", "trn", NULL}};
    const char *words = speech_text(1);
    char wanted[200];
    outcome o;

    (void)_;
    FOR_EACH (i, headers) {
        size_t width = strlen(words) * GLYPH;
        size_t n = (size_t)sprintf((char *)file, headers[i], width, HEIGHT);

        draw(words, 1, file + n);
        for (size_t k = 0; k < width * HEIGHT; k++)
            file[n + k] = file[n + k] == 0 ? 64 : 255;
        write_bytes("line.pgm", file, n + width * HEIGHT);
        o = BMUF("decode", "lines", "line.pgm");
        assert_code(o, 0);
        assert_true(strlen(o.out) > 1);
        snprintf(wanted, sizeof wanted, "%.*s (stdin)\n",
                 (int)strlen(o.out) - 1, o.out);
        c.in = "line.pgm";
        assert_string_equal(command_run(&c).out, wanted);
    }
    c.in = "people";
    write_text("people", "P1 line-1.png\nP5 1.png\n");
    o = command_run(&c);
    assert_says(o.out, " (P1)\n");
    assert_says(o.err, "P5 1.png: No such file");
    write_text("people", "P5 1.png\nP1 line-1.png\n");
    assert_says(command_run(&c).out, " (P1)\n");
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
    bm_transcript *heard = transcribe(t, "line-0.png");
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

/* The name of the image is its path from the folder of the file. */
static void test_a_folder_of_alto_can_be_packed(void **_)
{
    char *file = NULL;
    size_t size = 0;

    (void)_;
    assert_code(BMUF("decode", "lines", "line-0.png", "--format", "alto",
                     "--out", "read/alto"),
                0);
    file = slurp(in_folder("read/alto/line-0.xml"), &size);
    assert_says(file, "<fileName>../../line-0.png</fileName>");
    free(file);
    assert_says(BMUF("pack", "--images", "read/alto", "--out", "read/set").out,
                "1 sequence");
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
    assert_int_equal(mkdir(in_folder("book"), 0777), 0);
    assert_int_equal(link(in_folder("line-0.png"), in_folder("book/p1.png")),
                     0);
    assert_code(BMUF("decode", "lines", "book"), 0);
    write_text("book/p1.xml", "<?xml version=\"1.0\"?>\n<PcGts/>\n");
    assert_fails(BMUF("decode", "lines", "book"), 65,
                 "book/p1.png is a page, whose lines are in book/p1.xml; pack "
                 "the pages and give the packed set: bmuf pack --images book/ "
                 "--out DIR --vocab MODEL");
    write_text("book/p1.xml", "<?xml version=\"1.0\"?>\n<mets/>\n");
    assert_code(BMUF("decode", "lines", "book"), 0);
    write_text("tr.txt", "# set\nline-0 a <space> b\nline-1 b\n");
    assert_fails(BMUF("decode", "lines", "tr.txt"), 65,
                 "there is no line-0 a <space> b; pack a list of PyLaia first: "
                 "bmuf pack --images LIST --image-dir DIR");
}

static void write_white(const char *name, size_t width, size_t height)
{
    static unsigned char grey[300 * 300];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .format = PNG_FORMAT_GRAY,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height};

    assert_true(width * height <= sizeof grey);
    memset(grey, 255, sizeof grey);
    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, grey, 0, NULL));
}

/* By its shape: higher than half its width, and more than four times as high and
 * wide as a line is for the model. Lines and single digits are none. */
static void test_a_page_without_xml_is_warned_of(void **_)
{
    static const struct {
        size_t width, height;
        bool page;
    } all[] = {
        {200, 300, true},         {4 * HEIGHT + 1, 4 * HEIGHT + 1, true},
        {28, 28, false},          {4 * HEIGHT, 300, false},
        {300, 4 * HEIGHT, false}, {2 * 70, 70, false},
        {2 * 70 - 1, 70, true},
    };
    outcome o;

    (void)_;
    FOR_EACH (i, all) {
        write_white("scan.png", all[i].width, all[i].height);
        o = BMUF("decode", "lines", "scan.png");
        assert_code(o, 0);
        if (count_of(o.err, "the shape of a page") != (size_t)all[i].page)
            fail_msg("%zu x %zu: %s", all[i].width, all[i].height, o.err);
    }
    assert_int_equal(mkdir(in_folder("scans"), 0777), 0);
    write_white("scans/1.png", 200, 300);
    write_white("scans/2.png", 100, 200);
    write_white("scans/3.png", 300, 28);
    o = BMUF("decode", "lines", "scans");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "the shape of a page"), 1);
    assert_says(o.err, "scans/1.png (200 x 300 pixels) and 1 more image have "
                       "the shape of a page, but each image is read as one "
                       "line; find the lines with a program for layout, which "
                       "writes PAGE XML or ALTO");
}

/* Of a page that is transcribed in part all lines are decoded. */
static void test_lines_without_a_text_are_packed_for_decoding(void **_)
{
    static const char lines[] =
        "<PcGts><Page imageFilename=\"../line-3.png\" imageWidth=\"%zu\" "
        "imageHeight=\"16\"><TextRegion>"
        "<TextLine id=\"a\"><Coords points=\"0,0 %zu,0 %zu,16 0,16\"/>"
        "<TextEquiv><Unicode>abc</Unicode></TextEquiv></TextLine>"
        "<TextLine id=\"b\"><Coords points=\"0,0 %zu,0 %zu,16 0,16\"/>"
        "</TextLine></TextRegion></Page></PcGts>";
    size_t width = strlen(speech_text(3)) * GLYPH;
    char xml[1000], wanted[400], *text = NULL;

    (void)_;
    snprintf(xml, sizeof xml, lines, width, width, width, width, width);
    assert_int_equal(mkdir(in_folder("part"), 0777), 0);
    write_text("part/p.xml", xml);
    assert_fails(BMUF("pack", "--images", "part", "--out", "part-set",
                      "--vocab", "lines"),
                 65, "50 % of the sequences have no text",
                 "pack all without texts: --no-text --vocab MODEL");
    assert_code(BMUF("pack", "--images", "part", "--out", "part-set", "--vocab",
                     "lines", "--no-text"),
                0);
    text = strdup(BMUF("decode", "lines", "line-3.png").out);
    assert_non_null(text);
    text[strcspn(text, "\n")] = '\0';
    snprintf(wanted, sizeof wanted, "%s (p-a)\n%s (p-b)\n", text, text);
    free(text);
    assert_string_equal(
        BMUF("decode", "lines", "part-set", "--format", "trn").out, wanted);
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
        heard = transcribe(t, name);
        r = &heard->readings[0];
        edge = heard->length;
        for (size_t k = 0; k < r->n_words; k++) {
            const bm_transcript_word *w = &r->words[k];

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

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    write_lines();
    write_hebrew();
    make_model("--images", "lines.jsonl", "packed-lines", "features.height=16",
               "lines");
    make_model("--images", "hebrew.jsonl", "packed-hebrew",
               "features.height=16", "hebrew");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_give_words_with_their_places),
        cmocka_unit_test(test_places_of_slanted_strokes_are_those_of_the_image),
        cmocka_unit_test(test_portable_maps_come_from_stdin),
        cmocka_unit_test(test_alto_has_the_words_of_an_image),
        cmocka_unit_test(test_a_folder_of_alto_can_be_packed),
        cmocka_unit_test(test_images_and_their_packed_set_agree),
        cmocka_unit_test(test_pages_and_lists_of_pylaia_are_to_be_packed),
        cmocka_unit_test(test_a_page_without_xml_is_warned_of),
        cmocka_unit_test(test_lines_without_a_text_are_packed_for_decoding),
        cmocka_unit_test(test_comments_of_lists_are_no_inputs),
        cmocka_unit_test(test_a_set_without_places_is_one_fault),
        cmocka_unit_test(test_lines_from_right_to_left_are_read),
        cmocka_unit_test(test_sets_from_right_to_left_agree_with_files),
        cmocka_unit_test(
            test_numbers_of_a_lexicon_are_found_from_right_to_left),
    };

    return cmocka_run_group_tests_name("transcriber_lines", tests, prepare,
                                       folder_remove);
}
