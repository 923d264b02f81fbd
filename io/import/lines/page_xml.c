/* page_xml.c - the lines of a page with their texts, and the page's image. */
#include "io/import/lines/page_xml.h"

#include "core/file/file.h"
#include "core/file/path.h"
#include "core/grow.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/page_parts.h"
#include "io/import/lines/xml.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of a file. */
static const size_t most_bytes = (size_t)1 << 26;

void bm_page_fault(bm_page *p, const xmlNode *node, const char *format, ...)
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
static bool try_image(bm_page *p, const char *up, const char *name)
{
    int folder = name[0] != '/' ? (int)bm_path_folder_length(p->path) : 0;
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
static void find_image(bm_page *p, const char *name)
{
    const char *last = name;
    char suffix[BM_IMAGE_SUFFIX], made[NAME_MAX + sizeof suffix];

    for (const char *c = name; *c != '\0'; c++)
        if (*c == '/' || *c == '\\')
            last = c + 1;
    if (name[0] != '\0' && (try_image(p, "", name) || try_image(p, "", last) ||
                            try_image(p, "../", last)))
        return;
    for (size_t i = 0; bm_image_suffix(suffix, i); i++) {
        snprintf(made, sizeof made, "%s%s", p->stem, suffix);
        if (try_image(p, "", made) || try_image(p, "../", made))
            return;
    }
}

/* The name of the file without .xml, blanks and control characters. */
static void make_stem(bm_page *p)
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

/* ---- places --------------------------------------------------------------- */

static bm_status add_place(bm_page *p, xmlNode *node)
{
    BM_TRY(bm_grow(&p->places, p->n, &p->room, sizeof *p->places));
    p->places[p->n] = (bm_page_place){node, bm_page_region(p, node), p->n};
    p->n++;
    return BM_OK;
}

static int compare(const void *a, const void *b)
{
    const bm_page_place *x = a, *y = b;

    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
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

/* PAGE: of several TextEquiv of a line or word the one with the least index. */
static xmlChar *text_equiv(const xmlNode *line)
{
    const xmlNode *best = NULL;
    double least = INFINITY;

    for (const xmlNode *c = line->children; c != NULL; c = c->next)
        if (bm_xml_is(c, "TextEquiv")) {
            double index = bm_xml_number(c, "index");

            index = isnan(index) ? 0 : index;
            if (best == NULL || index < least) {
                best = c;
                least = index;
            }
        }
    best = bm_xml_child(best, "Unicode");
    return best != NULL ? xmlNodeGetContent(best) : NULL;
}

/* Or the texts of its words, with blanks between them. */
static xmlChar *page_text(const xmlNode *line)
{
    xmlChar *text = text_equiv(line);
    xmlBuffer *all = NULL;

    if (text != NULL)
        trim((char *)text);
    if ((text != NULL && *text != '\0') || bm_xml_child(line, "Word") == NULL)
        return text;
    xmlFree(text);
    text = NULL;
    all = xmlBufferCreate();
    for (const xmlNode *c = line->children; all != NULL && c != NULL;
         c = c->next) {
        xmlChar *word = bm_xml_is(c, "Word") ? text_equiv(c) : NULL;

        if (word != NULL) {
            xmlBufferCat(all, (const xmlChar *)" ");
            xmlBufferCat(all, word);
        }
        xmlFree(word);
    }
    if (all != NULL)
        text = xmlBufferDetach(all);
    xmlBufferFree(all);
    return text;
}

/* ALTO: words, with a blank for each SP, or between all if there is none. */
static xmlChar *alto_text(const xmlNode *line)
{
    bool spaced = bm_xml_child(line, "SP") != NULL;
    xmlBuffer *all = NULL;
    xmlChar *text = NULL;

    if (bm_xml_child(line, "String") == NULL)
        return NULL;
    all = xmlBufferCreate();
    for (const xmlNode *c = line->children; all != NULL && c != NULL;
         c = c->next) {
        xmlChar *content = bm_xml_is(c, "String") || bm_xml_is(c, "HYP")
                               ? bm_xml_attribute(c, "CONTENT")
                               : NULL;

        if (bm_xml_is(c, "SP") || (!spaced && bm_xml_is(c, "String")))
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

static bm_status give(bm_page *p, const xmlNode *node, const char *shape)
{
    xmlChar *name = bm_xml_attribute(node, p->alto ? "ID" : "id");
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
static bm_status give_faulty(bm_page *p, const xmlNode *node)
{
    char shape[sizeof p->fault + 40];

    snprintf(shape, sizeof shape, "0,0;0,0 0,0 0,0;;%s", p->fault);
    return give(p, node, shape);
}

static bm_status give_line(bm_page *p, const xmlNode *node, double width,
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
    good = bm_page_polygon(p, node);
    fputc(';', p->shape);
    good = good && bm_page_baseline(p, node);
    if (fclose(p->shape) != 0)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a line of %s", p->path);
    else
        status = good ? give(p, node, shape) : give_faulty(p, node);
    free(shape);
    return status;
}

/* Fails if coordinates are lengths, but nothing says how large the page is. */
static bm_status check_unit(const bm_page *p, xmlNode *element)
{
    xmlNode *node = p->alto ? bm_xml_find(p->root, "MeasurementUnit") : NULL;
    xmlChar *unit = node != NULL ? xmlNodeGetContent(node) : NULL;
    bm_status status = BM_OK;

    if (unit != NULL)
        trim((char *)unit);
    if (unit != NULL && strcmp((char *)unit, "pixel") != 0)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s:%ld: <MeasurementUnit> is %.20s, but <Page> has "
                         "no WIDTH and HEIGHT to scale by; add them in this "
                         "unit, or export the page in pixels",
                         p->path, xmlGetLineNo(element), (char *)unit);
    xmlFree(unit);
    return status;
}

/* All lines of one Page element, of which ALTO may have several. */
static bm_status read_page(bm_page *p, xmlNode *element)
{
    double width = bm_xml_number(element, p->alto ? "WIDTH" : "imageWidth");
    double height = bm_xml_number(element, p->alto ? "HEIGHT" : "imageHeight");
    bool sized = width > 0 && height > 0;

    p->n = 0;
    for (xmlNode *node = element; node != NULL;
         node = bm_xml_following(element, node))
        if (bm_xml_is(node, "TextLine"))
            BM_TRY(add_place(p, node));
    if (p->n > 0 && !sized)
        BM_TRY(check_unit(p, element));
    if (p->n > 0)
        qsort(p->places, p->n, sizeof *p->places, compare);
    for (size_t i = 0; i < p->n; i++)
        BM_TRY(give_line(p, p->places[i].node, sized ? width : 0,
                         sized ? height : 0));
    return BM_OK;
}

static bool is_page(const xmlNode *root)
{
    return bm_xml_is(root, "alto") || bm_xml_is(root, "PcGts");
}

static bm_status read_document(bm_page *p)
{
    xmlNode *element = bm_xml_find(p->root, "Page"), *order = NULL;
    xmlChar *name = NULL;

    p->alto = bm_xml_is(p->root, "alto");
    if (!is_page(p->root) || element == NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%ld: neither PAGE XML nor ALTO: its root is <%.60s>"
                       "%s; give files with <PcGts> or <alto>, and a <Page>",
                       p->path, xmlGetLineNo(p->root),
                       (const char *)p->root->name,
                       element == NULL ? ", without a <Page>" : "");
    if (p->alto) {
        xmlNode *file = bm_xml_find(p->root, "fileName");
        name = file != NULL ? xmlNodeGetContent(file) : NULL;
        if (name != NULL)
            trim((char *)name);
    } else {
        name = bm_xml_attribute(element, "imageFilename");
        order = bm_xml_child(element, "ReadingOrder");
    }
    find_image(p, name != NULL ? (const char *)name : "");
    xmlFree(name);
    if (order != NULL)
        bm_page_order(p, order);
    for (; element != NULL; element = element->next)
        if (bm_xml_is(element, "Page"))
            BM_TRY(read_page(p, element));
    return BM_OK;
}

bm_status bm_page_read(const char *path, const bm_line_taker *taker,
                       size_t *others)
{
    bm_page p = {.path = path, .taker = taker};
    xmlDoc *document = NULL;
    char *bytes = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, most_bytes, &bytes, &size));
    BM_TRY_DONE(bm_xml_parse(&document, path, bytes, size));
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
