/*
 * Lines of pages: cut out of drawn pages along their baselines, and read from
 * PAGE XML and ALTO.
 */
#include "io/import/images/image_cleaning.h"
#include "io/import/images/line_cut.h"
#include "io/import/lines/page_xml.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cutting -------------------------------------------------------------- */

enum { WIDTH = 400, HEIGHT = 200 };

/* How much of a pixel a bar covers that is `thick` pixels thick and along y =
 * middle(x), about which `slope` is true. */
static double covered(double y, double middle, double slope, double thick)
{
    double half = thick / 2 * hypot(1, slope);
    double a = fmax(y, middle - half), b = fmin(y + 1, middle + half);

    return fmax(b - a, 0);
}

/* The line that a page's bar is along: straight, or with a bend at x = 200. */
static double straight(double x)
{
    return 60 + 0.2 * x;
}

static double bent(double x)
{
    return x < 200 ? 60 + 0.2 * x : 100 - 0.1 * (x - 200);
}

/* A white page with such a black bar, 3 pixels thick, and a frame of black at
 * its border. */
static bm_line_image draw_page(double (*middle)(double x))
{
    bm_line_image page = {zeros(WIDTH * (size_t)HEIGHT, 1), WIDTH, HEIGHT};

    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < WIDTH; x++) {
            double at = (double)x + 0.5;
            double slope = middle(at + 0.5) - middle(at - 0.5);
            bool border = y < 10 || y >= HEIGHT - 10;

            page.grey[y * WIDTH + x] =
                border
                    ? 0
                    : (uint8_t)lround(
                          255 - 255 * covered((double)y, middle(at), slope, 3));
        }
    return page;
}

static bm_line_image cut_line(const bm_line_image *page, const char *text)
{
    bm_line_shape shape = {0};
    bm_line_image line = {0};
    bm_problem problem = {0};

    assert_ok(bm_line_shape_read(&shape, text));
    assert_ok(bm_line_cut(&line, page, &shape, "page.png", &problem));
    if (bm_problem_is(&problem))
        fail_msg("%s", problem.text);
    bm_line_shape_free(&shape);
    return line;
}

/* Where the middle of the ink of a column is; the ink in pixels. */
static double middle_of(const bm_line_image *line, size_t x, double *ink)
{
    double sum = 0;

    *ink = 0;
    for (size_t y = 0; y < line->height; y++) {
        double here = (255 - line->grey[y * line->width + x]) / 255.0;

        *ink += here;
        sum += here * ((double)y + 0.5);
    }
    return sum / *ink;
}

/* The bar is on the baseline, the polygon goes from 20 pixels above it to 10
 * below: the bar's middle is in row 20 everywhere. */
static void check_bar(const bm_line_image *line, double width)
{
    assert_true(fabs((double)line->width - width) <= 1);
    assert_in_range(line->height, 30, 32);
    for (size_t x = 2; x + 2 < line->width; x++) {
        double ink = 0, middle = middle_of(line, x, &ink);

        if (fabs(middle - 20) > 0.5 || fabs(ink - 3) > 0.5)
            fail_msg("column %zu: middle %g, not 20; %g pixels, not 3", x,
                     middle, ink);
    }
}

static void test_a_sloped_line_becomes_horizontal(void **_)
{
    bm_line_image page = draw_page(straight), line;
    double size = hypot(1, 0.2), nx = -0.2 / size, ny = 1 / size;
    char shape[300];

    (void)_;
    /* corners at x = 50 and 350 of the line, 20 above and 10 below */
    snprintf(shape, sizeof shape,
             "400,200;%.6f,%.6f %.6f,%.6f %.6f,%.6f %.6f,%.6f;50,70 350,130",
             50 - 20 * nx, 70 - 20 * ny, 350 - 20 * nx, 130 - 20 * ny,
             350 + 10 * nx, 130 + 10 * ny, 50 + 10 * nx, 70 + 10 * ny);
    line = cut_line(&page, shape);
    check_bar(&line, 300 * size);
    bm_line_image_free(&line);
    /* a baseline is only a direction: from inside, and from right to left */
    snprintf(strrchr(shape, ';'), 20, ";290,118 100,80");
    line = cut_line(&page, shape);
    check_bar(&line, 300 * size);
    bm_line_image_free(&line);
    bm_line_image_free(&page);
}

static void test_a_bent_line_becomes_straight(void **_)
{
    bm_line_image page = draw_page(bent), line;
    double length = 150 * hypot(1, 0.2) + 150 * hypot(1, 0.1);

    (void)_;
    line = cut_line(&page, "0,0;50,50 200,80 350,65 350,94.8 200,110 50,79.8;"
                           "50,70 200,100 350,85");
    assert_true(fabs((double)line.width - length) < 8);
    for (size_t x = 4; x + 4 < line.width; x++) {
        double ink = 0, middle = middle_of(&line, x, &ink);
        static double first;

        first = x == 4 ? middle : first;
        if (fabs(middle - first) > 0.5)
            fail_msg("column %zu: %g, not %g", x, middle, first);
    }
    bm_line_image_free(&line);
    bm_line_image_free(&page);
}

static void test_an_upright_line_keeps_its_pixels(void **_)
{
    static const char *const shapes[] = {
        "0,0;30,40 90,40 90,80 30,80;",
        "0,0;30,40 90,40 90,80 30,80;30,70 90,70",
        "800,400;60,80 180,80 180,160 60,160;"};
    bm_line_image page = draw_page(straight);

    (void)_;
    FOR_EACH (k, shapes) {
        bm_line_image line = cut_line(&page, shapes[k]);

        assert_int_equal(line.width, 60);
        assert_int_equal(line.height, 40);
        for (size_t y = 0; y < 40; y++)
            assert_memory_equal(line.grey + y * 60,
                                page.grey + (y + 40) * WIDTH + 30, 60);
        bm_line_image_free(&line);
    }
    bm_line_image_free(&page);
}

/* A page of one grey with a bar of ink in rows [20, 24). */
static bm_line_image draw_bar(uint8_t paper, uint8_t ink)
{
    bm_line_image page = {zeros(WIDTH * (size_t)HEIGHT, 1), WIDTH, HEIGHT};

    memset(page.grey, paper, WIDTH * (size_t)HEIGHT);
    memset(page.grey + 20 * WIDTH, ink, 4 * WIDTH);
    return page;
}

/* Of a triangle with a right angle at (10, 10) on such a page: its ink is ink,
 * and all else is paper. */
static void assert_triangle(const bm_line_image *line, uint8_t paper,
                            uint8_t ink)
{
    for (size_t y = 0; y < 40; y++)
        for (size_t x = 0; x < 40; x++)
            if (x + y != 39) /* the edge goes through the middle of those */
                assert_int_equal(line->grey[y * 40 + x],
                                 x + y < 39 && y >= 10 && y < 14 ? ink : paper);
}

static void test_outside_of_the_polygon_is_paper(void **_)
{
    static const uint8_t greys[][2] = {{255, 0}, {170, 120}, {30, 220}};
    static const char triangle[] = "0,0;10,10 50,10 10,50;";

    (void)_;
    FOR_EACH (k, greys) {
        uint8_t paper = greys[k][0], ink = greys[k][1];
        bm_line_image page = draw_bar(paper, ink);
        bm_line_image line = cut_line(&page, triangle);

        assert_int_equal(line.width, 40);
        assert_triangle(&line, paper, ink);
        bm_image_otsu(&line);
        assert_triangle(&line, paper > ink ? 255 : 0, paper > ink ? 0 : 255);
        bm_line_image_free(&line);
        line = cut_line(&page, triangle);
        bm_image_stretch(&line);
        assert_triangle(&line, paper > ink ? 255 : 0, paper > ink ? 0 : 255);
        bm_line_image_free(&line);
        bm_line_image_free(&page);
    }
}

/* Points outside of the page, as those of kraken may be: of the line only what
 * is on the page counts. */
static void test_a_polygon_ends_at_the_page(void **_)
{
    static const struct {
        const char *shape;
        size_t width, height;
    } cases[] = {
        {"0,0;-10,-900 50,-20 50,40 -10,40;", 50, 40},
        {"0,0;-1000,10 90000,10 90000,40 -50,40;", WIDTH, 30},
        {"0,0;300,150 410,150 410,9000 300,1000;", 100, 50},
        /* from (20, 0) to (60, 0) a point above the page is cut off */
        {"0,0;0,40 40,-40 80,40;", 80, 40},
        {"0,0;-10,-900 50,-20 50,40 -10,40;0,30 50,30", 50, 40},
    };
    bm_line_image page = draw_bar(200, 0);

    (void)_;
    FOR_EACH (k, cases) {
        bm_line_image line = cut_line(&page, cases[k].shape);

        assert_int_equal(line.width, cases[k].width);
        assert_int_equal(line.height, cases[k].height);
        bm_line_image_free(&line);
    }
    bm_line_image_free(&page);
}

static void check_problem(const bm_line_image *page, const char *text,
                          const char *words)
{
    bm_line_shape shape = {0};
    bm_line_image line = {0};
    bm_problem problem = {0};

    assert_ok(bm_line_shape_read(&shape, text));
    assert_ok(bm_line_cut(&line, page, &shape, "page.png", &problem));
    bm_line_shape_free(&shape);
    assert_null(line.grey);
    if (strstr(problem.text, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, problem.text);
}

static void test_impossible_lines_are_problems(void **_)
{
    static const struct {
        const char *shape, *words;
    } bad[] = {
        {"0,0;1,1 5,1", "a polygon of 2 points"},
        {"0;1,1 5,1 5,5;", "a page of invalid size"},
        {"0,0;1,1 5,1 5;", "not written as \"x,y x,y\""},
        {"0,0;1,1 5,1 5,1e9;", "point 3 is outside of any page"},
    };
    bm_line_image page = draw_page(straight);
    bm_line_shape shape = {0};

    (void)_;
    check_problem(&page, "0,0;500,10 550,10 550,50;", "covers none");
    check_problem(&page, "0,0;10,300 50,300 50,350;",
                  "page.png: the polygon covers none of the 400 x 200 pixels");
    check_problem(&page, "800,300;10,30 50,30 50,50;",
                  "400 x 200 pixels, but its page 800 x 300");
    /* the lower side is near the end of a baseline that comes back */
    check_problem(&page, "0,0;0,0 400,0 400,200 0,200;0,20 900000,20 0,180",
                  "pixels is too small or too large");
    check_problem(&page, "0,0;7,7 7,7 7,7;", "covers none");
    check_problem(&page, "0,0;0,0 0,0 0,0;;p.xml:7: an outline; of 2 points",
                  "p.xml:7: an outline; of 2 points");
    bm_line_image_free(&page);
    FOR_EACH (k, bad) {
        assert_int_equal(bm_line_shape_read(&shape, bad[k].shape),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), bad[k].words) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", bad[k].words, bm_last_error());
    }
}

/* ---- XML ------------------------------------------------------------------ */

/* What a file has, one line of text each, and its faults. */
typedef struct pages {
    char lines[3000], faults[2000];
} pages;

static bm_status take(void *to, const bm_found_line *line)
{
    char *all = ((pages *)to)->lines;
    size_t n = strlen(all);
    const char *image = strrchr(line->image, '/');

    snprintf(all + n, sizeof((pages *)to)->lines - n, "%zu %s %s %s [%s]\n",
             line->line, line->id, image != NULL ? image + 1 : line->image,
             line->shape, line->text != NULL ? line->text : "none");
    return BM_OK;
}

static void note(void *to, const char *file, size_t line, const char *text)
{
    char *all = ((pages *)to)->faults;
    size_t n = strlen(all);

    assert_non_null(strstr(file, ".xml"));
    snprintf(all + n, sizeof((pages *)to)->faults - n, "%zu: %s\n", line, text);
}

static bm_status read_pages(pages *out, const char *name, const char *xml)
{
    bm_line_taker taker = {.take = take, .fault = note, .to = out};

    memset(out, 0, sizeof *out);
    write_text(name, xml);
    return bm_page_read(in_folder(name), &taker, NULL);
}

static const char page_xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<PcGts xmlns=\"http://schema.primaresearch.org/PAGE/gts/pagecontent/"
    "2019-07-15\">\n"
    "<Page imageFilename=\"C:\\scans\\p 1.png\" imageWidth=\"400\" "
    "imageHeight=\"200\">\n"
    "<ReadingOrder><OrderedGroup id=\"g\">\n"
    "<RegionRefIndexed index=\"10\" regionRef=\"r1\"/>\n"
    "<OrderedGroupIndexed index=\"9\"><RegionRefIndexed index=\"20\" "
    "regionRef=\"r2\"/></OrderedGroupIndexed>\n"
    "</OrderedGroup></ReadingOrder>\n"
    "<TextRegion id=\"r0\"><Coords points=\"0,0 1,0 1,1\"/>\n"
    "<TextLine id=\"l 0\"><Coords points=\"1,1 9,1 9,5\"/>"
    "<TextEquiv><Unicode> </Unicode></TextEquiv></TextLine>\n"
    "</TextRegion>\n"
    "<TextRegion id=\"r1\">\n"
    "<TextLine id=\"l1\"><Coords points=\"1,1 9,1 9,5 1,5\"/>\n"
    "<Baseline points=\"1,4 9,4.5\"/>\n"
    "<Word><TextEquiv><Unicode>no</Unicode></TextEquiv></Word>\n"
    "<TextEquiv index=\"1\"><Unicode>second</Unicode></TextEquiv>\n"
    "<TextEquiv index=\"0\"><Unicode> a &amp;\n b </Unicode></TextEquiv>\n"
    "</TextLine></TextRegion>\n"
    "<TextRegion id=\"r2\"><TextRegion id=\"inner\">\n"
    "<TextLine id=\"l2\"><Coords><Point x=\"2\" y=\"3\"/><Point x=\"4\" "
    "y=\"3\"/>\n<Point x=\"4\" y=\"6\"/></Coords>"
    "<TextEquiv><Unicode>\xc3\xa9t\xc3\xa9</Unicode></TextEquiv></TextLine>\n"
    "</TextRegion></TextRegion>\n"
    "</Page></PcGts>\n";

static void test_page_xml_is_read_in_reading_order(void **_)
{
    pages p;

    (void)_;
    write_text("p 1.png", "");
    assert_ok(read_pages(&p, "p 1.xml", page_xml));
    assert_string_equal(p.faults, "");
    assert_string_equal(
        p.lines, "20 p_1-l2 p 1.png 400,200;2,3 4,3 4,6; [\xc3\xa9t\xc3\xa9]\n"
                 "12 p_1-l1 p 1.png 400,200;1,1 9,1 9,5 1,5;1,4 9,4.5 [a & b]\n"
                 "9 p_1-l_0 p 1.png 400,200;1,1 9,1 9,5; [none]\n");
}

/* Where a line has no text, or an empty one. */
static void test_words_of_page_xml_are_joined(void **_)
{
    static const char xml[] =
        "<PcGts><Page imageFilename=\"w.png\" imageWidth=\"9\" "
        "imageHeight=\"9\"><TextRegion>\n"
        "<TextLine id=\"a\"><Coords points=\"1,1 9,1 9,5\"/>"
        "<Word><TextEquiv><Unicode>one</Unicode></TextEquiv></Word>"
        "<Word/><Word><TextEquiv index=\"1\"><Unicode>2</Unicode></TextEquiv>"
        "<TextEquiv index=\"0\"><Unicode> two</Unicode></TextEquiv></Word>"
        "<TextEquiv><Unicode> </Unicode></TextEquiv></TextLine>\n"
        "<TextLine id=\"b\"><Coords points=\"1,1 9,1 9,5\"/><Word/>"
        "</TextLine></TextRegion></Page></PcGts>";
    pages p;

    (void)_;
    assert_ok(read_pages(&p, "w.xml", xml));
    assert_string_equal(p.lines, "2 w-a w.png 9,9;1,1 9,1 9,5; [one two]\n"
                                 "3 w-b w.png 9,9;1,1 9,1 9,5; [none]\n");
}

static void test_alto_is_read(void **_)
{
    static const char xml[] =
        "<alto xmlns=\"http://www.loc.gov/standards/alto/ns-v4#\">\n"
        "<Description><MeasurementUnit>pixel</MeasurementUnit>\n"
        "<sourceImageInformation><fileName>scan.jpg</fileName>\n"
        "</sourceImageInformation></Description>\n"
        "<Layout><Page WIDTH=\"800\" HEIGHT=\"600\"><PrintSpace><TextBlock>\n"
        "<TextLine ID=\"a\" BASELINE=\"1 9 30 8\" HPOS=\"0\" VPOS=\"0\" "
        "WIDTH=\"5\" HEIGHT=\"6\">\n"
        "<Shape><Polygon POINTS=\"1 2 30 2 30 12 1 12\"/></Shape>\n"
        "<String CONTENT=\"one\"/><SP/><String CONTENT=\"t\"/>"
        "<String CONTENT=\"wo\"/><HYP CONTENT=\"-\"/></TextLine>\n"
        "<TextLine ID=\"b\" BASELINE=\"14\" HPOS=\"1\" VPOS=\"2.5\" "
        "WIDTH=\"30\" HEIGHT=\"12\">\n"
        "<String CONTENT=\"no\"/><String CONTENT=\"blanks\"/></TextLine>\n"
        "<TextLine BASELINE=\"3,4 5,4\" HPOS=\"1\" VPOS=\"2\" WIDTH=\"3\" "
        "HEIGHT=\"4\"><String CONTENT=\"\"/></TextLine>\n"
        "</TextBlock></PrintSpace></Page></Layout></alto>\n";
    pages p;

    (void)_;
    assert_ok(read_pages(&p, "scan.xml", xml));
    assert_string_equal(p.faults, "");
    assert_string_equal(
        p.lines, "6 scan-a scan.jpg 800,600;1,2 30,2 30,12 1,12;1,9 30,8 "
                 "[one two-]\n"
                 "9 scan-b scan.jpg 800,600;1,2.5 31,2.5 31,14.5 1,14.5;1,14 "
                 "31,14 [no blanks]\n"
                 "11 scan-line11 scan.jpg 800,600;1,2 4,2 4,6 1,6;3,4 5,4 "
                 "[none]\n");
}

/* A page in lengths is scaled by its size, without which nothing is known. */
static void test_alto_in_lengths_needs_the_size_of_the_page(void **_)
{
    static const char xml[] =
        "<alto><Description><MeasurementUnit> inch1200\n</MeasurementUnit>"
        "</Description><Layout>\n<Page%s><TextLine ID=\"a\" HPOS=\"1\" "
        "VPOS=\"2\" WIDTH=\"30\" HEIGHT=\"12\"/></Page></Layout></alto>";
    char all[sizeof xml + 40];
    pages p;

    (void)_;
    snprintf(all, sizeof all, xml, "");
    assert_int_equal(read_pages(&p, "inch.xml", all), BM_ERR_FORMAT);
    if (strstr(bm_last_error(),
               "inch.xml:3: <MeasurementUnit> is inch1200, but <Page> has no "
               "WIDTH and HEIGHT to scale by; add them") == NULL)
        fail_msg("\"%s\"", bm_last_error());
    snprintf(all, sizeof all, xml, " WIDTH=\"800\" HEIGHT=\"400\"");
    assert_ok(read_pages(&p, "inch.xml", all));
    assert_non_null(strstr(p.lines, " 800,400;1,2 31,2 31,14 1,14; "));
}

static void test_a_baseline_of_one_number_needs_a_width(void **_)
{
    pages p;

    (void)_;
    assert_ok(read_pages(
        &p, "flat.xml",
        "<alto><Page><TextLine BASELINE=\"9\" HPOS=\"1\" VPOS=\"2\" "
        "WIDTH=\"0\" HEIGHT=\"5\"><Shape><Polygon POINTS=\"1 2 30 2 30 "
        "12\"/></Shape></TextLine></Page></alto>"));
    if (strstr(p.lines, "flat.xml:1: BASELINE is one number, which needs HPOS, "
                        "and WIDTH above 0") == NULL)
        fail_msg("\"%s\"", p.lines);
}

static void test_faults_of_lines_have_their_places(void **_)
{
    static const char xml[] =
        "<PcGts><Page imageFilename=\"x.png\">\n"
        "<TextLine id=\"a\"></TextLine>\n"
        "<TextLine id=\"b\"><Coords points=\"1,2 3,4\"/></TextLine>\n"
        "<TextLine id=\"c\"><Coords points=\"1,2 3,4 5,x\"/></TextLine>\n"
        "<TextLine id=\"d\"><Coords points=\"1,2 3,4 5,6\"/>\n"
        "<Baseline points=\"1\"/></TextLine>\n"
        "<TextLine id=\"e\"><Coords points=\"1,2 3,4 5e9,6\"/></TextLine>\n"
        "</Page></PcGts>\n";
    static const char *const faults[] = {
        "2: a line without the polygon around it: Coords is missing",
        "3: a line without the polygon around it: its points should be 3 to "
        "1000, as \"x,y x,y x,y\"",
        "4: a line without the polygon around it: its points should be 3 to "
        "1000, as \"x,y x,y x,y\"",
        "6: the points of a baseline should be at most 1000, as \"x,y x,y\"",
        "7: a line without the polygon around it: its points should be 3 to "
        "1000, as \"x,y x,y x,y\"",
    };
    pages p;

    (void)_;
    assert_ok(read_pages(&p, "faults.xml", xml));
    assert_string_equal(p.faults, "");
    FOR_EACH (k, faults) {
        char expected[400];

        snprintf(expected, sizeof expected,
                 " faults-%c x.png 0,0;0,0 0,0 0,0;;%s:%s [none]\n",
                 'a' + (char)k, in_folder("faults.xml"), faults[k]);
        if (strstr(p.lines, expected) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", expected, p.lines);
    }
}

static void test_other_xml_is_refused(void **_)
{
    static const struct {
        const char *xml, *words;
    } bad[] = {
        {"<PcGts>\n<Page>\n</PcGts>", "bad.xml:3: not XML: Opening and ending"},
        {"", "bad.xml:1: not XML: "},
        {"<PcGts>\n<Page imageFi", "bad.xml:2: not XML: "},
        {"<PcGts><Page x='a", "(column 18); the file is damaged or cut off "
                              "there: copy it again, or leave it out"},
        {"<html>\n<Page/></html>", "bad.xml:1: neither PAGE XML nor ALTO: its "
                                   "root is <html>;"},
        {"<alto>\n</alto>", "its root is <alto>, without a <Page>"},
        {"<!DOCTYPE PcGts [<!ENTITY a \"b\">]><PcGts><Page/></PcGts>",
         "bad.xml: it has a document type"},
    };
    pages p;

    (void)_;
    FOR_EACH (k, bad) {
        assert_int_equal(read_pages(&p, "bad.xml", bad[k].xml), BM_ERR_FORMAT);
        if (strstr(bm_last_error(), bad[k].words) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", bad[k].words, bm_last_error());
    }
}

/* Transkribus keeps XML in page/, and images one folder up. */
static void test_images_are_found_where_programs_put_them(void **_)
{
    static const char xml[] = "<PcGts><Page imageFilename=\"/old/x7.tif\">"
                              "<TextLine id=\"a\"><Coords points=\"1,2 3,4 "
                              "5,6\"/></TextLine></Page></PcGts>";
    pages p;

    (void)_;
    assert_ok(read_pages(&p, "x8.xml", xml)); /* nowhere: as it is said */
    assert_non_null(strstr(p.lines, "1 x8-a x7.tif "));
    write_text("x8.JPEG", ""); /* a camera's */
    assert_ok(read_pages(&p, "x8.xml", xml));
    assert_non_null(strstr(p.lines, "1 x8-a x8.JPEG "));
    write_text("x8.png", "");
    assert_ok(read_pages(&p, "x8.xml", xml));
    assert_non_null(strstr(p.lines, "1 x8-a x8.png "));
    write_text("x7.tif", "");
    assert_ok(read_pages(&p, "x8.xml", xml));
    assert_non_null(strstr(p.lines, "1 x8-a x7.tif "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sloped_line_becomes_horizontal),
        cmocka_unit_test(test_a_bent_line_becomes_straight),
        cmocka_unit_test(test_an_upright_line_keeps_its_pixels),
        cmocka_unit_test(test_outside_of_the_polygon_is_paper),
        cmocka_unit_test(test_a_polygon_ends_at_the_page),
        cmocka_unit_test(test_impossible_lines_are_problems),
        cmocka_unit_test(test_page_xml_is_read_in_reading_order),
        cmocka_unit_test(test_words_of_page_xml_are_joined),
        cmocka_unit_test(test_alto_is_read),
        cmocka_unit_test(test_alto_in_lengths_needs_the_size_of_the_page),
        cmocka_unit_test(test_a_baseline_of_one_number_needs_a_width),
        cmocka_unit_test(test_faults_of_lines_have_their_places),
        cmocka_unit_test(test_other_xml_is_refused),
        cmocka_unit_test(test_images_are_found_where_programs_put_them),
    };

    return cmocka_run_group_tests_name("page_lines", tests, folder_make,
                                       folder_remove);
}
