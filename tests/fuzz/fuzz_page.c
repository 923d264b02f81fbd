/* fuzz_page.c - PAGE XML and ALTO, whose lines are cut out of a page; the same
 * input as a list of PyLaia. */
#include "io/import/images/line_cut.h"
#include "io/import/lines/line_source.h"
#include "io/import/lines/page_xml.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, FARTHEST = 2000, CUTS = 3 };

/* Lines that were cut. */
static size_t cuts;

static bool is_near(const bm_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(p[i].x) > FARTHEST || fabs(p[i].y) > FARTHEST)
            return false;
    return true;
}

static void cut(const char *text)
{
    static uint8_t grey[SIDE * SIDE];
    const bm_line_image page = {grey, SIDE, SIDE};
    bm_line_shape shape = {0};
    bm_line_image line = {0};
    bm_problem problem = {0};

    FUZZ_RULE(bm_line_shape_read(&shape, text) == BM_OK);
    FUZZ_RULE(shape.n_polygon >= 3);
    shape.width = shape.height = 0; /* of the page here */
    if (is_near(shape.polygon, shape.n_polygon) &&
        is_near(shape.baseline, shape.n_baseline) && cuts++ < CUTS) {
        FUZZ_RULE(bm_line_cut(&line, &page, &shape, "page", &problem) == BM_OK);
        FUZZ_RULE(bm_problem_is(&problem) || line.width * line.height > 0);
    }
    bm_line_image_free(&line);
    bm_line_shape_free(&shape);
}

static bm_status take(void *to, const bm_found_line *line)
{
    (void)to;
    FUZZ_RULE(line->id != NULL && line->image != NULL && line->line > 0);
    FUZZ_RULE(strchr(line->id, ' ') == NULL);
    if (line->shape != NULL)
        cut(line->shape);
    return BM_OK;
}

static void note(void *to, const char *file, size_t line, const char *text)
{
    (void)to;
    FUZZ_RULE(file != NULL && line > 0 && text[0] != '\0');
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    const bm_line_taker taker = {.take = take, .fault = note};
    bm_status status = BM_OK;

    (void)data;
    (void)size;
    cuts = 0;
    status = bm_page_read(path, &taker, NULL);
    FUZZ_RULE(status == BM_OK || status == BM_ERR_FORMAT);
    status = bm_line_source_read(path, "images", &taker);
    FUZZ_RULE(status == BM_OK || status == BM_ERR_FORMAT);
}

const fuzz_target fuzz_page = {"page", "page.xml", run, NULL};
