/*
 * page_xml.c - by libxml2. Names of elements count without their namespaces, so
 * that every version of both formats is read. A document type is refused:
 * entities could make a small file large.
 */
#include "io/import/images/page_xml.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "io/import/images/line_cut.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_REGIONS = 4096 }; /* of a reading order */

/* Limit of a file. */
static const size_t most_bytes = (size_t)1 << 26;

/* Limit of a coordinate. */
static const double farthest = 1e6;

/* A line, and where it is in the order. */
typedef struct place {
    xmlNode *node;
    size_t region, at;
} place;

typedef struct page {
    const char *path;
    const bm_line_taker *taker;
    xmlNode *root;
    bool alto;
    char image[PATH_MAX], stem[NAME_MAX + 1];
    xmlChar *order[MOST_REGIONS]; /* ids of regions */
    size_t n_order;
    place *places;
    size_t n, room;
    /* Of one line. */
    FILE *shape;
    size_t n_points;
    char fault[1000]; /* its own, with the place, if it has one */
} page;

/* ---- elements ------------------------------------------------------------- */

static bool is(const xmlNode *node, const char *name)
{
    return node->type == XML_ELEMENT_NODE &&
           strcmp((const char *)node->name, name) == 0;
}

static xmlNode *child(const xmlNode *node, const char *name)
{
    xmlNode *c = node != NULL ? node->children : NULL;

    while (c != NULL && !is(c, name))
        c = c->next;
    return c;
}

/* The next node below `root`, parents first; NULL after the last one. */
static xmlNode *following(const xmlNode *root, xmlNode *node)
{
    if (node->type == XML_ELEMENT_NODE && node->children != NULL)
        return node->children;
    while (node != root && node->next == NULL)
        node = node->parent;
    return node != root ? node->next : NULL;
}

static xmlNode *find(xmlNode *root, const char *name)
{
    xmlNode *node = root;

    while (node != NULL && !is(node, name))
        node = following(root, node);
    return node;
}

/* NULL: it is missing; xmlFree. */
static xmlChar *attribute(const xmlNode *node, const char *name)
{
    return node != NULL ? xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name)
                        : NULL;
}

/* The number in an attribute; NAN if there is none. */
static double number(const xmlNode *node, const char *name)
{
    xmlChar *text = attribute(node, name);
    double x = NAN;

    if (text != NULL) {
        char *end = NULL;

        x = strtod((const char *)text, &end);
        if (end == (const char *)text || !(fabs(x) <= farthest))
            x = NAN;
    }
    xmlFree(text);
    return x;
}

/* Notes what is wrong with a line. */
static void fault(page *p, const xmlNode *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(page *p, const xmlNode *node, const char *format, ...)
{
    size_t n =
        (size_t)snprintf(p->fault, sizeof p->fault, "%.600s:%ld: ", p->path,
                         xmlGetLineNo((xmlNode *)node));
    va_list args;

    va_start(args, format);
    vsnprintf(p->fault + n, sizeof p->fault - n, format, args);
    va_end(args);
}

/* ---- the image ------------------------------------------------------------ */

/* Is there a file "FOLDER[../]NAME"? Its path is kept if so, or if it is the
 * first one that was looked for. */
static bool try_image(page *p, const char *up, const char *name)
{
    const char *slash = strrchr(p->path, '/');
    int folder =
        slash != NULL && name[0] != '/' ? (int)(slash - p->path) + 1 : 0;
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%.*s%s%s", folder, p->path, up, name) >=
        (int)sizeof path)
        return false;
    if (access(path, R_OK) != 0 && p->image[0] != '\0')
        return false;
    memcpy(p->image, path, sizeof path);
    return access(path, R_OK) == 0;
}

/* Under the name in the file, without the folder of another machine, and under
 * the name of the XML file. */
static void find_image(page *p, const char *name)
{
    static const char *const endings[] = {"png", "jpg", "jpeg", "tif", "tiff"};
    const char *last = name;
    char made[NAME_MAX + 8];

    for (const char *c = name; *c != '\0'; c++)
        if (*c == '/' || *c == '\\')
            last = c + 1;
    if (name[0] != '\0' && (try_image(p, "", name) || try_image(p, "", last) ||
                            try_image(p, "../", last)))
        return;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(made, sizeof made, "%s.%s", p->stem, endings[i]);
        if (try_image(p, "", made) || try_image(p, "../", made))
            return;
    }
}

/* The name of the file without .xml, blanks and control characters. */
static void make_stem(page *p)
{
    size_t n = 0;

    bm_file_name(p->path, p->stem, sizeof p->stem);
    n = strlen(p->stem);
    if (n > 4 && strcmp(p->stem + n - 4, ".xml") == 0)
        p->stem[n - 4] = '\0';
}

static void blank_out(char *id)
{
    for (; *id != '\0'; id++)
        if ((unsigned char)*id <= ' ')
            *id = '_';
}

/* ---- reading order -------------------------------------------------------- */

/* A reference to a region, number `at` of the file. */
typedef struct reference {
    const xmlNode *node;
    size_t at;
} reference;

static size_t depth_of(const xmlNode *node)
{
    size_t depth = 0;

    for (; node != NULL; node = node->parent)
        depth++;
    return depth;
}

/* The index in a group; members without one are the last. */
static double index_of(const xmlNode *node)
{
    double index = number(node, "index");
    return isnan(index) ? INFINITY : index;
}

/* By the indices of the members of the innermost group that has both. */
static int compare_references(const void *a, const void *b)
{
    const reference *x = a, *y = b;
    const xmlNode *p = x->node, *q = y->node;
    size_t deep = depth_of(p), other = depth_of(q);

    for (; deep > other; deep--)
        p = p->parent;
    for (; other > deep; other--)
        q = q->parent;
    while (p != q && p->parent != q->parent) {
        p = p->parent;
        q = q->parent;
    }
    if (p != q && index_of(p) < index_of(q))
        return -1;
    if (p != q && index_of(p) > index_of(q))
        return 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void read_order(page *p, xmlNode *order)
{
    reference found[MOST_REGIONS];
    size_t n = 0;

    for (xmlNode *node = order; node != NULL && n < MOST_REGIONS;
         node = following(order, node))
        if (node->type == XML_ELEMENT_NODE &&
            xmlHasProp(node, (const xmlChar *)"regionRef") != NULL) {
            found[n] = (reference){node, n};
            n++;
        }
    if (n > 0)
        qsort(found, n, sizeof *found, compare_references);
    for (size_t i = 0; i < n; i++) {
        p->order[p->n_order] = attribute(found[i].node, "regionRef");
        p->n_order += p->order[p->n_order] != NULL;
    }
}

/* The place of a line's region in the reading order; after it: not there. */
static size_t region_of(const page *p, const xmlNode *node)
{
    size_t found = p->n_order;

    for (; node != NULL && node != p->root && found == p->n_order;
         node = node->parent) {
        xmlChar *id = attribute(node, "id");

        found = 0;
        while (found < p->n_order &&
               (id == NULL || !xmlStrEqual(id, p->order[found])))
            found++;
        xmlFree(id);
    }
    return found;
}

static bm_status add_place(page *p, xmlNode *node)
{
    if (p->n == p->room) {
        size_t room = 2 * p->room + 64;
        place *grown = realloc(p->places, room * sizeof *grown);

        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for the lines of %s",
                           p->path);
        p->places = grown;
        p->room = room;
    }
    p->places[p->n] = (place){node, region_of(p, node), p->n};
    p->n++;
    return BM_OK;
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* ---- shapes --------------------------------------------------------------- */

static void print_point(page *p, double x, double y)
{
    fprintf(p->shape, "%s%.9g,%.9g", p->n_points++ > 0 ? " " : "", x, y);
}

/* Numbers in pairs, separated by commas or blanks. False if they are invalid. */
static bool print_points(page *p, const char *text)
{
    for (const char *at = text;;) {
        double x[2];

        for (size_t i = 0; i < 2; i++) {
            char *end = NULL;

            at += strspn(at, " ,\t\r\n");
            if (i == 0 && *at == '\0')
                return p->n_points <= BM_MOST_POINTS;
            x[i] = strtod(at, &end);
            if (end == at || !(fabs(x[i]) <= farthest))
                return false;
            at = end;
        }
        print_point(p, x[0], x[1]);
    }
}

/* The points of a polygon or baseline in this attribute, or, in old PAGE, in
 * elements. */
static bool print_attribute(page *p, const xmlNode *node, const char *name)
{
    xmlChar *text = attribute(node, name);
    bool good = true;

    if (text != NULL)
        good = print_points(p, (const char *)text);
    else
        for (const xmlNode *c = node->children; c != NULL && good; c = c->next)
            if (is(c, "Point")) {
                double x = number(c, "x"), y = number(c, "y");

                good = !isnan(x) && !isnan(y);
                if (good)
                    print_point(p, x, y);
            }
    xmlFree(text);
    return good && p->n_points <= BM_MOST_POINTS;
}

/* ALTO: a line's box, for want of a polygon. */
static bool print_box(page *p, const xmlNode *line)
{
    double x = number(line, "HPOS"), y = number(line, "VPOS");
    double w = number(line, "WIDTH"), h = number(line, "HEIGHT");

    if (isnan(x) || isnan(y) || isnan(w) || isnan(h) || !(w > 0 && h > 0))
        return false;
    print_point(p, x, y);
    print_point(p, x + w, y);
    print_point(p, x + w, y + h);
    print_point(p, x, y + h);
    return true;
}

static bool print_polygon(page *p, const xmlNode *line)
{
    const xmlNode *polygon = p->alto ? child(child(line, "Shape"), "Polygon")
                                     : child(line, "Coords");
    bool good = false;

    p->n_points = 0;
    if (polygon != NULL)
        good = print_attribute(p, polygon, p->alto ? "POINTS" : "points");
    else if (p->alto)
        good = print_box(p, line);
    if (!good || p->n_points < 3)
        fault(p, polygon != NULL ? polygon : line,
              "a line without the polygon around it: %s",
              polygon == NULL ? (p->alto ? "Shape/Polygon, or HPOS, VPOS, "
                                           "WIDTH and HEIGHT, are missing"
                                         : "Coords is missing")
                              : "its points should be 3 to 1000, as \"x,y "
                                "x,y x,y\"");
    return good && p->n_points >= 3;
}

/* ALTO before version 4 may have one number: the height of a straight one. */
static bool print_alto_baseline(page *p, const xmlNode *line)
{
    xmlChar *text = attribute(line, "BASELINE");
    double x = number(line, "HPOS"), w = number(line, "WIDTH");
    char *end = NULL;
    bool good = true;

    if (text != NULL) {
        double y = strtod((const char *)text, &end);

        if (*end == '\0' && end != (const char *)text && fabs(y) <= farthest &&
            !isnan(x) && w > 0) {
            print_point(p, x, y);
            print_point(p, x + w, y);
        } else {
            good = print_points(p, (const char *)text);
        }
    }
    xmlFree(text);
    return good;
}

/* It may be missing. */
static bool print_baseline(page *p, const xmlNode *line)
{
    const xmlNode *baseline = p->alto ? line : child(line, "Baseline");
    bool good = true;

    p->n_points = 0;
    if (p->alto)
        good = print_alto_baseline(p, line);
    else if (baseline != NULL)
        good = print_attribute(p, baseline, "points");
    if (!good)
        fault(p, baseline,
              "the points of a baseline should be at most 1000, as \"x,y "
              "x,y\"");
    return good;
}

/* ---- texts ---------------------------------------------------------------- */

/* Ends of lines, tabs and blanks to single blanks, none at the ends. */
static void trim(char *text)
{
    char *to = text;

    for (const char *c = text; *c != '\0'; c++) {
        bool blank = *c == ' ' || (*c >= '\t' && *c <= '\r');

        if (!blank)
            *to++ = *c;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    if (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

/* PAGE: of several TextEquiv the one with the least index. */
static xmlChar *page_text(const xmlNode *line)
{
    const xmlNode *best = NULL;
    double least = INFINITY;

    for (const xmlNode *c = line->children; c != NULL; c = c->next)
        if (is(c, "TextEquiv")) {
            double index = number(c, "index");

            index = isnan(index) ? 0 : index;
            if (best == NULL || index < least) {
                best = c;
                least = index;
            }
        }
    best = child(best, "Unicode");
    return best != NULL ? xmlNodeGetContent(best) : NULL;
}

/* ALTO: words, with a blank for each SP, or between all if there is none. */
static xmlChar *alto_text(const xmlNode *line)
{
    bool spaced = child(line, "SP") != NULL;
    xmlBuffer *all = NULL;
    xmlChar *text = NULL;

    if (child(line, "String") == NULL)
        return NULL;
    all = xmlBufferCreate();
    for (const xmlNode *c = line->children; all != NULL && c != NULL;
         c = c->next) {
        xmlChar *content =
            is(c, "String") || is(c, "HYP") ? attribute(c, "CONTENT") : NULL;

        if (is(c, "SP") || (!spaced && is(c, "String")))
            xmlBufferCat(all, (const xmlChar *)" ");
        if (content != NULL)
            xmlBufferCat(all, content);
        xmlFree(content);
    }
    if (all != NULL)
        text = xmlBufferDetach(all);
    xmlBufferFree(all);
    return text;
}

/* ---- lines ---------------------------------------------------------------- */

static bm_status give(page *p, const xmlNode *node, const char *shape)
{
    xmlChar *name = attribute(node, p->alto ? "ID" : "id");
    xmlChar *text = p->alto ? alto_text(node) : page_text(node);
    char id[2 * NAME_MAX];
    long line = xmlGetLineNo((xmlNode *)node);
    bm_status status = BM_OK;

    if (name != NULL)
        snprintf(id, sizeof id, "%s-%s", p->stem, (const char *)name);
    else
        snprintf(id, sizeof id, "%s-line%ld", p->stem, line);
    blank_out(id);
    if (text != NULL)
        trim((char *)text);
    if (text != NULL && *text == '\0') { /* not transcribed */
        xmlFree(text);
        text = NULL;
    }
    status = p->taker->take(p->taker->to,
                            &(bm_found_line){.id = id,
                                             .image = p->image,
                                             .shape = shape,
                                             .text = (const char *)text,
                                             .file = p->path,
                                             .line = (size_t)line});
    xmlFree(name);
    xmlFree(text);
    return status;
}

/* A line with a fault is left out when it is read. */
static bm_status give_faulty(page *p, const xmlNode *node)
{
    char shape[sizeof p->fault + 40];

    snprintf(shape, sizeof shape, "0,0;0,0 0,0 0,0;;%s", p->fault);
    return give(p, node, shape);
}

static bm_status give_line(page *p, const xmlNode *node, double width,
                           double height)
{
    char *shape = NULL;
    size_t n = 0;
    bool good = false;
    bm_status status = BM_OK;

    p->shape = open_memstream(&shape, &n);
    if (p->shape == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a line of %s", p->path);
    fprintf(p->shape, "%.9g,%.9g;", width, height);
    good = print_polygon(p, node);
    fputc(';', p->shape);
    good = good && print_baseline(p, node);
    if (fclose(p->shape) != 0)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a line of %s", p->path);
    else
        status = good ? give(p, node, shape) : give_faulty(p, node);
    free(shape);
    return status;
}

/* All lines of one Page element, of which ALTO may have several. */
static bm_status read_page(page *p, xmlNode *element)
{
    double width = number(element, p->alto ? "WIDTH" : "imageWidth");
    double height = number(element, p->alto ? "HEIGHT" : "imageHeight");
    bool sized = width > 0 && height > 0;

    p->n = 0;
    for (xmlNode *node = element; node != NULL; node = following(element, node))
        if (is(node, "TextLine"))
            BM_TRY(add_place(p, node));
    if (p->n > 0)
        qsort(p->places, p->n, sizeof *p->places, compare);
    for (size_t i = 0; i < p->n; i++)
        BM_TRY(give_line(p, p->places[i].node, sized ? width : 0,
                         sized ? height : 0));
    return BM_OK;
}

static bool is_page(const xmlNode *root)
{
    return is(root, "alto") || is(root, "PcGts");
}

static bm_status read_document(page *p)
{
    xmlNode *element = find(p->root, "Page"), *order = NULL;
    xmlChar *name = NULL;

    p->alto = is(p->root, "alto");
    if (!is_page(p->root) || element == NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%ld: neither PAGE XML nor ALTO: its root is <%.60s>"
                       "%s; give files with <PcGts> or <alto>, and a <Page>",
                       p->path, xmlGetLineNo(p->root),
                       (const char *)p->root->name,
                       element == NULL ? ", without a <Page>" : "");
    if (p->alto) {
        xmlNode *file = find(p->root, "fileName");
        name = file != NULL ? xmlNodeGetContent(file) : NULL;
        if (name != NULL)
            trim((char *)name);
    } else {
        name = attribute(element, "imageFilename");
        order = child(element, "ReadingOrder");
    }
    find_image(p, name != NULL ? (const char *)name : "");
    xmlFree(name);
    if (order != NULL)
        read_order(p, order);
    for (; element != NULL; element = element->next)
        if (is(element, "Page"))
            BM_TRY(read_page(p, element));
    return BM_OK;
}

/* ---- files ---------------------------------------------------------------- */

/* The first error of a parser; later ones follow from it. */
typedef struct parse_error {
    int line, column, code;
    char text[200];
} parse_error;

static void keep_error(void *parser, xmlError *e)
{
    parse_error *first = ((xmlParserCtxt *)parser)->_private;
    const char *why = e->message != NULL ? e->message : "it cannot be parsed";

    if (first->text[0] != '\0' || e->level < XML_ERR_ERROR)
        return;
    first->line = e->line;
    first->column = e->int2;
    first->code = e->code;
    snprintf(first->text, sizeof first->text, "%.*s", (int)strcspn(why, "\n"),
             why);
}

/* For what libxml2 reports without a parser and would print: bytes that are not
 * of the encoding that the file names. */
static void ignore(void *none, xmlError *e)
{
    (void)none;
    (void)e;
}

static bm_status parse(xmlDoc **out, const char *path, const char *bytes,
                       size_t size)
{
    xmlParserCtxt *parser = xmlNewParserCtxt();
    parse_error first = {.line = 1, .column = 1};
    bm_status status = BM_OK;

    if (parser == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    parser->_private = &first;
    parser->sax->serror = keep_error;
    xmlSetStructuredErrorFunc(NULL, ignore);
    *out = xmlCtxtReadMemory(parser, bytes, (int)size, NULL, NULL,
                             XML_PARSE_NONET | XML_PARSE_NOERROR |
                                 XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES);
    xmlSetStructuredErrorFunc(NULL, NULL);
    if (*out == NULL && first.code == XML_ERR_NO_MEMORY)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    else if (*out == NULL)
        status = BM_FAIL(
            BM_ERR_FORMAT,
            "%s:%d: not XML: %s (column %d); the file is damaged or cut off "
            "there: copy it again, or leave it out",
            path, first.line,
            first.text[0] != '\0'
                ? first.text
                : "it is empty, or in another encoding than it says",
            first.column);
    else if ((*out)->intSubset != NULL)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s: it has a document type (<!DOCTYPE>), which "
                         "neither PAGE XML nor ALTO has; remove it",
                         path);
    xmlFreeParserCtxt(parser);
    return status;
}

bm_status bm_page_read(const char *path, const bm_line_taker *taker,
                       size_t *others)
{
    page p = {.path = path, .taker = taker};
    xmlDoc *document = NULL;
    char *bytes = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, most_bytes, &bytes, &size));
    BM_TRY_DONE(parse(&document, path, bytes, size));
    p.root = xmlDocGetRootElement(document);
    make_stem(&p);
    if (others != NULL && !is_page(p.root))
        (*others)++;
    else
        status = read_document(&p);
done:
    for (size_t i = 0; i < p.n_order; i++)
        xmlFree(p.order[i]);
    free(p.places);
    xmlFreeDoc(document);
    free(bytes);
    return status;
}
