/* page_shape.c - polygons and baselines of a page's lines, written as line_cut.h
 * reads them. */
#include "io/import/images/line_cut.h"
#include "io/import/lines/page_parts.h"
#include "io/import/lines/xml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char bad_points[] =
    "the points of a baseline should be at most 1000, as \"x,y x,y\"";

static void print_point(bm_page *p, double x, double y)
{
    fprintf(p->shape, "%s%.9g,%.9g", p->n_points++ > 0 ? " " : "", x, y);
}

/* Numbers in pairs, separated by commas or blanks. False if they are invalid. */
static bool print_points(bm_page *p, const char *text)
{
    for (const char *at = text;;) {
        double x[2];

        for (size_t i = 0; i < 2; i++) {
            char *end = NULL;

            at += strspn(at, " ,\t\r\n");
            if (i == 0 && *at == '\0')
                return p->n_points <= BM_MOST_POINTS;
            x[i] = strtod(at, &end);
            if (end == at || !(fabs(x[i]) <= BM_FARTHEST))
                return false;
            at = end;
        }
        print_point(p, x[0], x[1]);
    }
}

/* The points of a polygon or baseline in this attribute, or, in old PAGE, in
 * elements. */
static bool print_attribute(bm_page *p, const xmlNode *node, const char *name)
{
    xmlChar *text = bm_xml_attribute(node, name);
    bool good = true;

    if (text != NULL)
        good = print_points(p, (const char *)text);
    else
        for (const xmlNode *c = node->children; c != NULL && good; c = c->next)
            if (bm_xml_is(c, "Point")) {
                double x = bm_xml_number(c, "x"), y = bm_xml_number(c, "y");

                good = !isnan(x) && !isnan(y);
                if (good)
                    print_point(p, x, y);
            }
    xmlFree(text);
    return good && p->n_points <= BM_MOST_POINTS;
}

/* ALTO: a line's box, for want of a polygon. */
static bool print_box(bm_page *p, const xmlNode *line)
{
    double x = bm_xml_number(line, "HPOS"), y = bm_xml_number(line, "VPOS");
    double w = bm_xml_number(line, "WIDTH"), h = bm_xml_number(line, "HEIGHT");

    if (isnan(x) || isnan(y) || isnan(w) || isnan(h) || !(w > 0 && h > 0))
        return false;
    print_point(p, x, y);
    print_point(p, x + w, y);
    print_point(p, x + w, y + h);
    print_point(p, x, y + h);
    return true;
}

bool bm_page_polygon(bm_page *p, const xmlNode *line)
{
    const xmlNode *polygon =
        p->alto ? bm_xml_child(bm_xml_child(line, "Shape"), "Polygon")
                : bm_xml_child(line, "Coords");
    bool good = false;

    p->n_points = 0;
    if (polygon != NULL)
        good = print_attribute(p, polygon, p->alto ? "POINTS" : "points");
    else if (p->alto)
        good = print_box(p, line);
    if (!good || p->n_points < 3)
        bm_page_fault(p, polygon != NULL ? polygon : line,
                      "a line without the polygon around it: %s",
                      polygon == NULL
                          ? (p->alto ? "Shape/Polygon, or HPOS, VPOS, "
                                       "WIDTH and HEIGHT, are missing"
                                     : "Coords is missing")
                          : "its points should be 3 to 1000, as \"x,y "
                            "x,y x,y\"");
    return good && p->n_points >= 3;
}

/* ALTO before version 4 may have one number: the height of a straight one.
 * Returns what is wrong with it; NULL: nothing. */
static const char *print_alto_baseline(bm_page *p, const xmlNode *line)
{
    xmlChar *text = bm_xml_attribute(line, "BASELINE");
    double x = bm_xml_number(line, "HPOS"), w = bm_xml_number(line, "WIDTH");
    const char *fault = NULL;
    char *end = NULL;
    double y = text != NULL ? strtod((const char *)text, &end) : 0;
    bool number = end != NULL && end != (const char *)text && *end == '\0' &&
                  fabs(y) <= BM_FARTHEST;

    if (number && !isnan(x) && w > 0) {
        print_point(p, x, y);
        print_point(p, x + w, y);
    } else if (number) {
        fault = "BASELINE is one number, which needs HPOS, and WIDTH above 0";
    } else if (text != NULL && !print_points(p, (const char *)text)) {
        fault = bad_points;
    }
    xmlFree(text);
    return fault;
}

bool bm_page_baseline(bm_page *p, const xmlNode *line)
{
    const xmlNode *baseline = p->alto ? line : bm_xml_child(line, "Baseline");
    const char *fault = NULL;

    p->n_points = 0;
    if (p->alto)
        fault = print_alto_baseline(p, line);
    else if (baseline != NULL && !print_attribute(p, baseline, "points"))
        fault = bad_points;
    if (fault != NULL)
        bm_page_fault(p, baseline, "%s", fault);
    return fault == NULL;
}
