/*
 * Line images as other programs keep them: folders with .gt.txt, lists of PyLaia,
 * pages in XML. Pages and lines are drawn here.
 */
#include "io/shard/dataset.h"
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

enum { WIDTH = 120, HEIGHT = 80 };

/* A white page with a black box of 40 x 10 pixels at (x, y). */
static void write_page(const char *name, size_t x, size_t y)
{
    uint8_t grey[HEIGHT][WIDTH];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = WIDTH,
                     .height = HEIGHT,
                     .format = PNG_FORMAT_GRAY};

    memset(grey, 255, sizeof grey);
    for (size_t k = 0; k < 10; k++)
        memset(&grey[y + k][x], 0, 40);
    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, grey, 0, NULL));
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(in_folder(name), 0777), 0);
}

static void open_images(bm_importer **i, const char *path,
                        const char *image_dir)
{
    bm_config *config = SET("features.height=10", "features.columns=4");

    assert_ok(bm_importer_open(i, "images", config,
                               &(bm_import_source){.path = path,
                                                   .image_dir = image_dir,
                                                   .most_missing = 1}));
    bm_config_free(config);
}

static void check_item(bm_importer *i, const char *id, const char *text,
                       size_t frames)
{
    bm_item item = next_item(i);

    assert_non_null(item.id);
    if (item.problem != NULL)
        fail_msg("%s", item.problem->text);
    assert_string_equal(item.id, id);
    assert_int_equal(item.has_text, text != NULL);
    assert_string_equal(item.text, text != NULL ? text : "");
    assert_int_equal(item.frames, frames);
}

/* Opening fails so. */
static void check_failure(const char *path, const char *image_dir,
                          bm_status expected, const char *words)
{
    bm_importer *i = NULL;

    assert_int_equal(
        bm_importer_open(&i, "images", NULL,
                         &(bm_import_source){.path = path,
                                             .image_dir = image_dir,
                                             .most_missing = 1}),
        expected);
    if (strstr(bm_last_error(), words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, bm_last_error());
}

static void test_a_folder_of_images_and_texts_is_read(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("gt");
    write_page("gt/b.png", 1, 1);
    write_page("gt/a 1.bin.png", 1, 1);
    write_page("gt/without.png", 1, 1);
    write_text("gt/b.gt.txt", "one\ntwo\n");
    write_text("gt/a 1.gt.txt", "\xef\xbb\xbfl'\xc3\xa9t\xc3\xa9\r\n");
    write_text("gt/b.xml", "not looked at");
    open_images(&i, in_folder("gt"), NULL);
    assert_int_equal(i->ops->size(i), 2);
    check_item(i, "a_1", "l'\xc3\xa9t\xc3\xa9", (15 + 3) / 4);
    check_item(i, "b", "one two", (15 + 3) / 4);
    assert_null(next_item(i).id);
    bm_importer_close(i);
}

static void test_faults_of_folders_are_named(void **_)
{
    (void)_;
    make_folder("empty");
    make_folder("bad");
    check_failure(in_folder("empty"), "", BM_ERR_FORMAT,
                  "empty has neither NAME.gt.txt beside images of lines, nor "
                  "pages in XML");
    write_text("bad/a.gt.txt", "text");
    check_failure(in_folder("bad"), "", BM_ERR_MISSING,
                  "bad/a.png: No such file");
    write_text("bad/a.gt.txt", "\xff");
    write_page("bad/a.png", 1, 1);
    check_failure(in_folder("bad"), "", BM_ERR_FORMAT,
                  "byte 1 of the text of \"a\" is not UTF-8");
}

/* As ketos takes them with -t. Two images of one name get their folders. */
static void test_lists_of_images_are_read_with_their_texts(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("left");
    make_folder("right");
    write_page("left/p1.bin.png", 1, 1);
    write_page("right/p1.png", 1, 1);
    write_text("left/p1.gt.txt", "one\n");
    write_text("right/p1.gt.txt", "two\n");
    write_text("images.txt", "# ketos\n\nright/p1.png\r\nleft/p1.bin.png\n");
    open_images(&i, in_folder("images.txt"), NULL);
    assert_int_equal(i->ops->size(i), 2);
    check_item(i, "right-p1", "two", (15 + 3) / 4);
    check_item(i, "left-p1", "one", (15 + 3) / 4);
    assert_null(next_item(i).id);
    bm_importer_close(i);
    write_text("images.txt", "right/p1.png\nleft/bare.png\n");
    write_page("left/bare.png", 1, 1); /* without a text */
    open_images(&i, in_folder("images.txt"), NULL);
    assert_true(i->without_text == 0.5);
    assert_non_null(strstr(i->first_without, "bare ("));
    assert_non_null(strstr(i->first_without, "images.txt:2)"));
    check_item(i, "p1", "two", (15 + 3) / 4);
    check_item(i, "bare", NULL, (15 + 3) / 4);
    bm_importer_close(i);
    write_text("images.txt", "right/p1.png\nright/p1.png\n");
    check_failure(in_folder("images.txt"), "", BM_ERR_FORMAT,
                  "images.txt names it twice (id \"");
}

/* As the files of a manifest are. */
static void test_missing_files_of_lists_are_named_with_their_lines(void **_)
{
    (void)_;
    write_text("gone.txt", "right/p1.png\n\nleft/none.png\n");
    check_failure(in_folder("gone.txt"), "", BM_ERR_FORMAT,
                  "1 of 2 files cannot be opened");
    check_failure(in_folder("gone.txt"), "", BM_ERR_FORMAT, "gone.txt:3: ");
    write_text("gone.txt", "# all\nleft/x.png\nleft/y.xml\n");
    check_failure(in_folder("gone.txt"), "", BM_ERR_MISSING, "gone.txt:2: ");
    check_failure(in_folder("gone.txt"), "", BM_ERR_MISSING,
                  "left/x.png is missing, as are all 2 of the list; a relative "
                  "path is looked for in the working directory");
    write_text("gone.txt", "right/p1.png\nleft/y.xml\n");
    check_failure(in_folder("gone.txt"), "", BM_ERR_FORMAT, "gone.txt:2: ");
}

static void test_marks_of_editors_before_lists_are_skipped(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    write_text("marked.txt", "\xef\xbb\xbfright/p1.png\n");
    open_images(&i, in_folder("marked.txt"), NULL);
    check_item(i, "p1", "two", (15 + 3) / 4);
    bm_importer_close(i);
    write_text("marked.txt", "\xef\xbb\xbfp1 t o\n");
    open_images(&i, in_folder("marked.txt"), in_folder("right"));
    check_item(i, "p1", "to", (15 + 3) / 4);
    bm_importer_close(i);
}

static void test_lists_of_characters_are_read(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("img");
    write_page("img/l1.png", 1, 1);
    write_page("img/l2.jpg", 1, 1); /* the name is free */
    write_page("img/l3.png", 1, 1);
    write_text("tr.txt", "# id text\nl1 t o <space> b \xc3\xa9\n\nl2.jpg x\n"
                         "l3\n");
    open_images(&i, in_folder("tr.txt"), in_folder("img"));
    check_item(i, "l1", "to b\xc3\xa9", (15 + 3) / 4);
    check_item(i, "l2.jpg", "x", (15 + 3) / 4);
    check_item(i, "l3", "", (15 + 3) / 4);
    assert_null(next_item(i).id);
    bm_importer_close(i);
    write_text("plain.txt", "l1 to be \nl2 or <not>\n");
    open_images(&i, in_folder("plain.txt"), in_folder("img"));
    check_item(i, "l1", "to be", (15 + 3) / 4);
    check_item(i, "l2", "or <not>", (15 + 3) / 4);
    bm_importer_close(i);
    write_text("marks.txt", "l1 p\xcc\x84 <space> x\xcc\xb2\xcc\x84\n");
    open_images(&i, in_folder("marks.txt"), in_folder("img"));
    check_item(i, "l1", "p\xcc\x84 x\xcc\xb2\xcc\x84", (15 + 3) / 4);
    bm_importer_close(i);
    write_text("odd.txt", "l1 a <space> b\nl2 word c\nl1 c\n");
    check_failure(in_folder("odd.txt"), in_folder("img"), BM_ERR_FORMAT,
                  "odd.txt:2: 'word' is not one character");
    check_failure(in_folder("odd.txt"), NULL, BM_ERR_FORMAT,
                  "odd.txt is a text, not a manifest; a list \"id text\" of "
                  "PyLaia is for bmuf pack --images LIST --image-dir DIR");
    write_text("twice.txt", "l1 a\nl1 b\n");
    check_failure(in_folder("twice.txt"), in_folder("img"), BM_ERR_FORMAT,
                  "twice.txt:2: duplicate id \"l1\", also on line 1");
}

/* As PyLaia's examples write blanks; with a table of theirs, too. */
static void test_lists_of_pylaia_may_call_the_space_sp(void **_)
{
    bm_importer *i = NULL;
    outcome o;

    (void)_;
    make_folder("sp");
    write_page("sp/l1.png", 1, 1);
    write_text("sp.txt", "l1 t o <sp> t o\n");
    open_images(&i, in_folder("sp.txt"), in_folder("sp"));
    check_item(i, "l1", "to to", (15 + 3) / 4);
    bm_importer_close(i);
    write_text("spsyms.txt", "<ctc> 0\n<sp> 1\no 2\nt 3\n");
    o = BMUF("pack", "--images", "sp.txt", "--image-dir", "sp", "--vocab",
             "spsyms.txt", "--units", "characters", "--out", "sp1", "--json",
             "--set", "features.columns=1");
    assert_code(o, 0);
    assert_says(o.out, "\"classes\": 4");
    assert_says(o.out, "\"labels\": 5");
    assert_null(strstr(o.err, "not in the vocabulary"));
}

/* The end of PyLaia's own table; and a text with a symbol that is not in it. */
static void test_tables_of_pylaia_have_unknown_symbols(void **_)
{
    outcome o;

    (void)_;
    make_folder("lines");
    write_page("lines/l1.png", 1, 1);
    write_text("unk.txt", "l1 t <unk> o <space> t o t\n");
    write_text("syms.txt", "<ctc> 0\no 1\nt 2\n<unk> 3\n<space> 4\n");
    o = BMUF("pack", "--images", "unk.txt", "--image-dir", "lines", "--vocab",
             "syms.txt", "--units", "characters", "--out", "u1", "--json",
             "--set", "features.columns=1");
    assert_code(o, 0);
    assert_says(o.out, "\"classes\": 5");
    assert_says(o.out, "\"labels\": 6");
    assert_says(o.err, "1 symbol in 1 text is not in the vocabulary");
    o = BMUF("pack", "--images", "unk.txt", "--image-dir", "lines", "--vocab",
             "syms.txt", "--out", "u2");
    assert_code(o, 65);
    assert_says(o.err, "its symbols are characters: add --units characters");
    o = BMUF("pack", "--images", "unk.txt", "--image-dir", "lines", "--out",
             "u3", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"labels\": 7"); /* U+FFFD is learned */
}

/* Hebrew (R), Arabic (AL), digits of Arabic (AN), which are no letters, Latin. */
static void test_directions_of_texts_are_counted(void **_)
{
    outcome o;

    (void)_;
    write_page("lines/l2.png", 1, 1);
    write_page("lines/l3.png", 1, 1);
    write_page("lines/l4.png", 1, 1);
    write_text("bidi.txt", "l1 a <space> \xd7\x90\nl2 \xd8\xa7\n"
                           "l3 \xd9\xa3 b\nl4 a b\n");
    o = BMUF("pack", "--images", "bidi.txt", "--image-dir", "lines", "--out",
             "b1");
    assert_code(o, 0);
    assert_says(o.err, "bidi.txt: 1 of 4 texts run from right to left, and "
                       "their labels against the frames");
    write_text("left.txt", "l1 \xd7\x90\nl2 \xd8\xa7 b\nl3 \xd9\xa3\n");
    o = BMUF("pack", "--images", "left.txt", "--image-dir", "lines", "--out",
             "b3");
    assert_code(o, 0);
    assert_says(o.err, "left.txt: 1 of 3 texts run from right to left, and so "
                       "do the frames");
    o = BMUF("pack", "--images", "unk.txt", "--image-dir", "lines", "--out",
             "b2");
    assert_code(o, 0);
    assert_null(strstr(o.err, "right"));
}

/* Two lines: one in the box that is black, one beside it. */
static void test_a_wrong_folder_of_images_is_one_line(void **_)
{
    (void)_;
    write_text("ids.txt", "a t\nb t\n");
    check_failure(in_folder("ids.txt"), "nowhere", BM_ERR_MISSING,
                  "ids.txt:1: nowhere/a.png: No such file "
                  "or directory; give the folder of the images with "
                  "--image-dir");
}

static void test_lists_may_be_compressed_or_standard_input(void **_)
{
    static const char text[] = "l1 t o\nl2 b e\n";
    bm_importer *i = NULL;

    (void)_;
    make_folder("zip");
    write_page("zip/l1.png", 1, 1);
    write_page("zip/l2.png", 1, 1);
    write_gzip("tr.txt.gz", text);
    write_text("input.txt", text);
    for (size_t k = 0; k < 2; k++) {
        if (k == 1)
            assert_non_null(freopen(in_folder("input.txt"), "r", stdin));
        open_images(&i, k == 0 ? in_folder("tr.txt.gz") : "-",
                    in_folder("zip"));
        check_item(i, "l1", "to", (15 + 3) / 4);
        check_item(i, "l2", "be", (15 + 3) / 4);
        assert_null(next_item(i).id);
        bm_importer_close(i);
    }
    write_bytes("tr.txt.gz", "\x1f\x8b\x08", 3);
    check_failure(in_folder("tr.txt.gz"), in_folder("zip"), BM_ERR_FORMAT,
                  "damaged or end early");
    write_bytes("zero.txt", "l1 a\n\0\n", 7);
    check_failure(in_folder("zero.txt"), in_folder("zip"), BM_ERR_FORMAT,
                  "zero.txt:2: a zero byte");
}

static const char xml[] =
    "<PcGts><Page imageFilename=\"%s.png\" imageWidth=\"120\" "
    "imageHeight=\"80\">\n"
    "<TextLine id=\"black\"><Coords points=\"20,30 60,30 60,40 20,40\"/>"
    "<Baseline points=\"20,38 60,38\"/>"
    "<TextEquiv><Unicode>%s</Unicode></TextEquiv></TextLine>\n"
    "<TextLine id=\"white\"><Coords points=\"20,50 60,50 60,60 20,60\"/>"
    "</TextLine>\n</Page></PcGts>\n";

static void write_xml(const char *path, const char *name, const char *text)
{
    char all[1000];

    snprintf(all, sizeof all, xml, name, text);
    write_text(path, all);
}

/* Lists of paths and pages are read more than once. */
static void test_pages_that_are_read_once_say_so(void **_)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"pages/a.xml\n", "-: a list of paths that comes from standard input"},
        {"lines/a.png\n",
         "-: a list of paths that comes from standard input; write it"},
        {"<PcGts/>\n", "-: a page in XML that comes from standard input"},
    };

    (void)_;
    FOR_EACH (k, cases) {
        write_text("input.txt", cases[k].text);
        assert_non_null(freopen(in_folder("input.txt"), "r", stdin));
        check_failure("-", NULL, BM_ERR_FORMAT, cases[k].message);
    }
    write_gzip("p.xml.gz", "<?xml version=\"1.0\"?>\n<PcGts/>\n");
    check_failure(in_folder("p.xml.gz"), NULL, BM_ERR_FORMAT,
                  "p.xml.gz: a page in XML that is compressed; unpack it");
}

static void check_page(bm_importer *i, const char *name, const char *text)
{
    char id[40];
    bm_item item;

    item = next_item(i);
    snprintf(id, sizeof id, "%s-black", name);
    assert_string_equal(item.id, id);
    assert_null(item.problem);
    assert_string_equal(item.text, text);
    assert_int_equal(item.frames, 10);
    for (size_t k = 0; k < item.frames * item.features; k++)
        assert_true(item.x[k] == 0); /* most is dark: it counts as inverted */
    snprintf(id, sizeof id, "%s-white", name);
    check_item(i, id, NULL, 10);
}

static void test_pages_are_read_from_files_folders_and_lists(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("book");
    write_page("book/p1.png", 20, 30);
    write_page("book/p2.png", 20, 30);
    write_xml("book/p1.xml", "p1", "one");
    write_xml("book/p2.xml", "p2", "two");
    open_images(&i, in_folder("book/p2.xml"), "");
    check_page(i, "p2", "two");
    assert_null(next_item(i).id);
    check_page(i, "p2", "two"); /* a second pass */
    bm_importer_close(i);
    write_text("pages.txt", "book/p2.xml\n# a comment\nbook/p1.xml\n");
    write_gzip("pages.gz", "book/p2.xml\n# a comment\nbook/p1.xml\n");
    for (size_t k = 0; k < 3; k++) {
        static const char *const names[] = {"book", "pages.txt", "pages.gz"};

        open_images(&i, in_folder(names[k]), "");
        assert_int_equal(i->ops->size(i), 4);
        check_page(i, k == 0 ? "p1" : "p2", k == 0 ? "one" : "two");
        check_page(i, k == 0 ? "p2" : "p1", k == 0 ? "two" : "one");
        assert_null(next_item(i).id);
        bm_importer_close(i);
    }
}

/* Pages of one name in two folders; images of one are missing. */
static void test_pages_of_several_folders_have_their_own_ids(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("r1");
    make_folder("r2");
    write_xml("r1/p.xml", "p", "one");
    write_xml("r2/p.xml", "p", "two");
    write_page("r1/p.png", 20, 30);
    write_text("two.txt", "r1/p.xml\nr2/p.xml\n");
    check_failure(in_folder("two.txt"), "", BM_ERR_FORMAT, "r2/p.xml:2: ");
    write_page("r2/p.png", 20, 30);
    open_images(&i, in_folder("two.txt"), "");
    check_page(i, "r1-p", "one");
    check_page(i, "r2-p", "two");
    bm_importer_close(i);
    write_text("two.txt", "r1/p.xml\nr1/p.xml\n");
    check_failure(in_folder("two.txt"), "", BM_ERR_FORMAT,
                  "two.txt names it twice (id \"r1-p-black\"); remove one");
}

/* A METS file, as eScriptorium puts beside its pages. */
static void test_other_xml_beside_pages_is_ignored(void **_)
{
    bm_importer *i = NULL;

    (void)_;
    make_folder("export");
    write_text("export/METS.xml", "<mets><fileSec/></mets>");
    check_failure(in_folder("export"), "", BM_ERR_FORMAT,
                  "export: none of its XML files is PAGE XML or ALTO, with "
                  "the root <PcGts> or <alto>; give the folder of the pages, "
                  "such as page/ of an export of Transkribus");
    write_page("export/p1.png", 20, 30);
    write_xml("export/p1.xml", "p1", "one");
    open_images(&i, in_folder("export"), "");
    check_page(i, "p1", "one");
    assert_null(next_item(i).id);
    bm_importer_close(i);
}

static void test_faults_of_pages_are_named(void **_)
{
    bm_importer *i = NULL;
    bm_item item;

    (void)_;
    make_folder("broken");
    write_text("broken/a.xml", "<PcGts><Page>\n</PcGts>\n");
    check_failure(in_folder("broken"), "", BM_ERR_FORMAT,
                  "broken/a.xml:2: not XML: ");
    write_text("broken/a.xml", "<alto><Page/></alto>");
    check_failure(in_folder("broken/a.xml"), "", BM_ERR_FORMAT,
                  "a.xml has no lines of text");
    write_xml("broken/a.xml", "a", "t");
    check_failure(in_folder("broken/a.xml"), "", BM_ERR_MISSING,
                  "broken/a.png: No such file");
    write_text("broken/a.png", "no image");
    open_images(&i, in_folder("broken/a.xml"), "");
    for (size_t k = 0; k < 2; k++) {
        item = next_item(i);
        assert_non_null(item.problem);
        assert_non_null(strstr(item.problem->text, "a.png: not a PNG"));
    }
    bm_importer_close(i);
}

/* Of four lines one has two points; another one has two points and no text. */
static void test_a_line_without_an_outline_is_left_out(void **_)
{
    static const char text[] =
        "<PcGts><Page imageFilename=\"p.png\">\n"
        "<TextLine id=\"a\"><Coords points=\"20,30 60,30 60,40 20,40\"/>"
        "<TextEquiv><Unicode>one</Unicode></TextEquiv></TextLine>\n"
        "<TextLine id=\"b\"><Coords points=\"20,30 60,30\"/>"
        "<TextEquiv><Unicode>two</Unicode></TextEquiv></TextLine>\n"
        "<TextLine id=\"c\"><Coords points=\"20,30 60,30\"/></TextLine>\n"
        "<TextLine id=\"d\"><Coords points=\"20,50 60,50 60,60 20,60\"/>"
        "<TextEquiv><Unicode>one</Unicode></TextEquiv></TextLine>\n"
        "</Page></PcGts>\n";
    outcome o;

    (void)_;
    make_folder("two_points");
    write_page("two_points/p.png", 20, 30);
    write_text("two_points/p.xml", text);
    o = BMUF("pack", "--images", "two_points", "--out", "o1", "--max-left-out",
             "50");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences");
    assert_says(o.out, "2 without a valid outline or baseline");
    assert_says(o.err, "left out p-b: ");
    assert_says(o.err, "two_points/p.xml:3: a line without the polygon around "
                       "it: its points should be 3 to 1000");
    assert_fails(BMUF("pack", "--images", "two_points", "--out", "o2",
                      "--max-left-out", "49"),
                 65, "left out 2 of 4: 2 without a valid outline or baseline");
}

/* A folder's pages, a list of pages with one that is missing, and texts. */
static void test_all_files_of_no_use_are_named_at_once(void **_)
{
    static const char *const words[] = {"3 problems:", "many/a.xml:2: not XML",
                                        "many/b.xml:1: not XML",
                                        "many/c.xml:2: not XML"};

    (void)_;
    make_folder("many");
    write_text("many/a.xml", "<PcGts><Page>\n</PcGts>\n");
    write_text("many/b.xml", "");
    write_text("many/c.xml", "<alto>\n</Page>\n");
    FOR_EACH (k, words)
        check_failure(in_folder("many"), "", BM_ERR_FORMAT, words[k]);
    write_text("pages.lst", "many/a.xml\nnowhere.xml\nmany/c.xml\n");
    check_failure(in_folder("pages.lst"), "", BM_ERR_FORMAT,
                  "nowhere.xml: No such file");
    check_failure(in_folder("pages.lst"), "", BM_ERR_FORMAT,
                  "many/c.xml:2: not XML");
    make_folder("texts");
    make_folder("texts/a.gt.txt");
    make_folder("texts/b.gt.txt");
    check_failure(in_folder("texts"), "", BM_ERR_FORMAT, "a.gt.txt");
    check_failure(in_folder("texts"), "", BM_ERR_FORMAT, "b.gt.txt");
}

/* One message, and nothing that libxml2 prints. */
static void test_xml_in_another_encoding_is_one_message(void **_)
{
    (void)_;
    write_text("odd.xml", "<?xml version=\"1.0\" encoding=\"EUC-JP\"?>\n"
                          "<PcGts><Page/>\xff\xff\xfe\xfe</PcGts>");
    assert_fails(BMUF("pack", "--images", "odd.xml", "--out", "d0"), 65,
                 "odd.xml:2: not XML: ");
}

/* Texts that are left out, an image of one row, and one of another kind. */
static void test_what_looks_wrong_is_warned_of(void **_)
{
    uint8_t rows[2 * 300];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = 300,
                     .height = 1,
                     .format = PNG_FORMAT_GRAY};
    outcome o;

    (void)_;
    make_folder("odd");
    for (size_t k = 0; k < sizeof rows; k++)
        rows[k] = (uint8_t)(k % 7);
    write_page("odd/a.Png", 1, 1);
    write_text("odd/a.gt.txt", "a\xc2\xa0"
                               "b\xc2\xa0\xc2\xad");
    assert_true(
        png_image_write_to_file(&png, in_folder("odd/low.png"), 0, rows, 0, 0));
    write_text("odd/low.gt.txt", "b");
    write_text("odd/other.bmp", "BM");
    write_text("odd/other.gt.txt", "axyz");
    o = BMUF("pack", "--images", "odd", "--out", "o3", "--max-left-out", "40");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences");
    assert_says(o.err, "left out other: ");
    assert_says(o.err, "odd/other.bmp: not a PNG, JPEG, TIFF, PBM, PGM or PPM "
                       "image; convert it to one of these");
    assert_says(o.err, "texts have invisible characters, and each is a class: "
                       "U+00A0 (2 times), U+00AD (1 time); replace them");
    assert_says(o.err, "only texts that were left out have 3 symbols of the "
                       "vocabulary: 'x', 'y', 'z'\n");
    assert_says(o.err, "1 of 2 sequences is enlarged more than eight times: "
                       "low\n");
    /* The same of a text that came with the vocabulary is meant. */
    o = BMUF("pack", "--images", "odd", "--out", "o4", "--max-left-out", "40",
             "--vocab", "o3");
    assert_code(o, 0);
    assert_null(strstr(o.err, "invisible"));
    assert_null(strstr(o.err, "only texts"));
}

static void test_pack_takes_what_users_have(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("pack", "--images", "gt", "--out", "d1");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences");
    assert_says(o.err, "gt: 1 of 3 images has no text (NAME.gt.txt) and was "
                       "not packed, e.g. without.png");
    assert_says(o.err,
                "gt: 1 XML file not read, because there are lines with a "
                "text (NAME.gt.txt); pack a list of their paths");
    o = BMUF("pack", "--images", "tr.txt", "--image-dir", "img", "--out", "d2",
             "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"sequences\": 3");
    assert_says(o.out, "\"labels\": 6");
    o = BMUF("pack", "--images", "book", "--out", "d3", "--set",
             "features.binarise=otsu", "--max-left-out", "50");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences");
    assert_says(o.out, "left out 2 of 4: 2 without a text");
    assert_says(BMUF("info", "d3").out, "otsu");
    assert_fails(BMUF("pack", "--images", "book", "gt", "--out", "d4"), 64,
                 "unexpected file 'gt'; only --returnn takes several. Give "
                 "their folder, or a list of their paths");
    assert_fails(
        BMUF("pack", "--audio", "tr.txt", "--image-dir", "img", "--out", "d4"),
        64, "--image-dir requires --images");
}

/* ---- ALTO, packed -------------------------------------------------------- */

/* A pixel of a page with a shade for each, all of them light. */
static uint8_t shade(size_t x, size_t y)
{
    return (uint8_t)(130 + (7 * x + 13 * y) % 126);
}

/* Where pixel (x, y) of a line is on the page; false: outside of the outline. */
typedef bool place_of(size_t x, size_t y, size_t *page_x, size_t *page_y);

/* The left edge of the outline goes from (20, 30) to (25, 40). */
static bool slanted_edge(size_t x, size_t y, size_t *page_x, size_t *page_y)
{
    *page_x = 20 + x;
    *page_y = 30 + y;
    return (double)x + 0.5 > ((double)y + 0.5) / 2;
}

/* Along (70, 10) to (70, 50): the tops of letters are at the right. */
static bool downwards(size_t x, size_t y, size_t *page_x, size_t *page_y)
{
    *page_x = 69 - y;
    *page_y = 10 + x;
    return true;
}

static bool box(size_t x, size_t y, size_t *page_x, size_t *page_y)
{
    *page_x = 80 + x;
    *page_y = 60 + y;
    return true;
}

static int by_grey(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* The median inside of the outline, which lines have outside of it. */
static uint8_t paper_of(place_of *place)
{
    uint8_t inside[400];
    size_t n = 0;

    for (size_t k = 0; k < 400; k++) {
        size_t page_x = 0, page_y = 0;

        if (place(k / 10, k % 10, &page_x, &page_y))
            inside[n++] = shade(page_x, page_y);
    }
    qsort(inside, n, 1, by_grey);
    return inside[(n - 1) / 2];
}

/* Fails unless frames of 4 columns of 10 pixels are the ink of such a line of
 * 40 columns. */
static void check_pixels(const char *id, const float *x, place_of *place)
{
    uint8_t paper = paper_of(place);

    for (size_t k = 0; k < 400; k++) {
        size_t page_x = 0, page_y = 0;
        uint8_t ink = 255 - paper;

        if (place(k / 10, k % 10, &page_x, &page_y))
            ink = (uint8_t)(255 - shade(page_x, page_y));
        if (fabs((double)x[k] - ink / 255.0) > 1e-6)
            fail_msg("%s: column %zu, row %zu: %g, not %g", id, k / 10, k % 10,
                     255 * (double)x[k], (double)ink);
    }
}

static void write_alto_page(const char *name)
{
    uint8_t grey[HEIGHT][WIDTH];
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = WIDTH,
                     .height = HEIGHT,
                     .format = PNG_FORMAT_GRAY};

    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < WIDTH; x++)
            grey[y][x] = shade(x, y);
    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, grey, 0, NULL));
}

/* Lengths are twice those in pixels, as in a file in millimetres. A baseline to
 * the left is turned around, one downwards turns the line by 90 degrees. */
static const char alto[] =
    "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n"
    "<alto xmlns=\"http://www.loc.gov/standards/alto/ns-v4#\">\n"
    "<Description><MeasurementUnit>mm10</MeasurementUnit>\n"
    "<sourceImageInformation><fileName>/scans/leaf 1.png</fileName>\n"
    "</sourceImageInformation></Description>\n"
    "<Layout><Page ID=\"p\" WIDTH=\"240\" HEIGHT=\"160\"><PrintSpace>\n"
    "<ComposedBlock><TextBlock>\n"
    "<TextLine ID=\"l1\" BASELINE=\"120 76 40 76\" HPOS=\"0\" VPOS=\"0\" "
    "WIDTH=\"9\" HEIGHT=\"9\">"
    "<Shape><Polygon POINTS=\"40,60 120,60 120,80 50,80\"/></Shape>\n"
    "<String CONTENT=\"\xe9t\xe9\"/><SP/><String CONTENT=\"a\"/>"
    "<HYP CONTENT=\"-\"/></TextLine></TextBlock></ComposedBlock>\n"
    "<TextBlock><TextLine ID=\"l2\" BASELINE=\"140 20 140 100\">"
    "<Shape><Polygon POINTS=\"120 20 140 20 140 100 120 100\"/></Shape>"
    "<String CONTENT=\"ta\"/><String CONTENT=\"t\"/></TextLine>\n"
    "<TextLine ID=\"l3\" BASELINE=\"136\" HPOS=\"160\" VPOS=\"120\" "
    "WIDTH=\"80\" HEIGHT=\"20\"/></TextBlock>\n"
    "</PrintSpace></Page></Layout></alto>\n";

static void test_alto_is_packed(void **_)
{
    static const struct {
        const char *id, *text; /* NULL: there is none */
        place_of *place;
    } lines[] = {{"leaf_1-l1", "\xc3\xa9t\xc3\xa9 a-", slanted_edge},
                 {"leaf_1-l2", "ta t", downwards},
                 {"leaf_1-l3", NULL, box}};
    bm_importer *importer = NULL;
    bm_item item;
    bm_dataset *d = NULL;
    bm_sequences s = {0};
    const int32_t *targets = NULL;
    outcome o;

    (void)_;
    make_folder("alto");
    write_alto_page("alto/leaf 1.png");
    write_text("alto/leaf 1.xml", alto);
    o = BMUF("pack", "--images", "alto", "--out", "d-alto", "--set",
             "features.height=10", "--set", "features.columns=4",
             "--max-left-out", "34");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences, 20 frames, 10 labels");
    assert_says(o.out, "left out 1 of 3: 1 without a text");
    assert_ok(bm_dataset_open(&d, in_folder("d-alto")));
    assert_int_equal(d->n_units, 1);
    assert_ok(bm_dataset_read(d, 0, &s));
    assert_int_equal(s.n, 2);
    assert_int_equal(s.features, 40);
    targets = s.targets;
    for (size_t i = 0; i < s.n; i++) {
        const char *id = NULL;
        char *text = NULL;

        assert_ok(bm_dataset_tag(d, (int64_t)i, &id));
        assert_string_equal(id, lines[i].id);
        assert_int_equal(s.frames[i], 10);
        check_pixels(id, s.x + i * 400, lines[i].place);
        assert_ok(bm_vocab_decode(bm_dataset_vocab(d), targets,
                                  (size_t)s.labels[i], &text));
        assert_string_equal(text, lines[i].text);
        assert_true(bm_dataset_has_reference(d, (int64_t)i));
        targets += s.labels[i];
        free(text);
    }
    bm_sequences_free(&s);
    bm_dataset_close(d);
    open_images(&importer, in_folder("alto"), NULL);
    for (size_t i = 0; i < 3; i++)
        item = next_item(importer);
    assert_string_equal(item.id, lines[2].id);
    assert_false(item.has_text);
    check_pixels(item.id, item.x, lines[2].place);
    bm_importer_close(importer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_folder_of_images_and_texts_is_read),
        cmocka_unit_test(test_faults_of_folders_are_named),
        cmocka_unit_test(test_lists_of_characters_are_read),
        cmocka_unit_test(test_lists_of_pylaia_may_call_the_space_sp),
        cmocka_unit_test(test_tables_of_pylaia_have_unknown_symbols),
        cmocka_unit_test(test_directions_of_texts_are_counted),
        cmocka_unit_test(test_a_wrong_folder_of_images_is_one_line),
        cmocka_unit_test(test_lists_may_be_compressed_or_standard_input),
        cmocka_unit_test(test_lists_of_images_are_read_with_their_texts),
        cmocka_unit_test(
            test_missing_files_of_lists_are_named_with_their_lines),
        cmocka_unit_test(test_marks_of_editors_before_lists_are_skipped),
        cmocka_unit_test(test_pages_that_are_read_once_say_so),
        cmocka_unit_test(test_pages_are_read_from_files_folders_and_lists),
        cmocka_unit_test(test_a_line_without_an_outline_is_left_out),
        cmocka_unit_test(test_all_files_of_no_use_are_named_at_once),
        cmocka_unit_test(test_pages_of_several_folders_have_their_own_ids),
        cmocka_unit_test(test_other_xml_beside_pages_is_ignored),
        cmocka_unit_test(test_faults_of_pages_are_named),
        cmocka_unit_test(test_xml_in_another_encoding_is_one_message),
        cmocka_unit_test(test_what_looks_wrong_is_warned_of),
        cmocka_unit_test(test_pack_takes_what_users_have),
        cmocka_unit_test(test_alto_is_packed),
    };

    return cmocka_run_group_tests_name("line_sources", tests, folder_make,
                                       folder_remove);
}
