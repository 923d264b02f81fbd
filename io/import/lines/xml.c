/* xml.c - by libxml2. A document type is refused: entities could make a small file
 * large. */
#include "io/import/lines/xml.h"

#include <libxml/parser.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bm_xml_is(const xmlNode *node, const char *name)
{
    return node->type == XML_ELEMENT_NODE &&
           strcmp((const char *)node->name, name) == 0;
}

xmlNode *bm_xml_child(const xmlNode *node, const char *name)
{
    xmlNode *c = node != NULL ? node->children : NULL;

    while (c != NULL && !bm_xml_is(c, name))
        c = c->next;
    return c;
}

xmlNode *bm_xml_following(const xmlNode *root, xmlNode *node)
{
    if (node->type == XML_ELEMENT_NODE && node->children != NULL)
        return node->children;
    while (node != root && node->next == NULL)
        node = node->parent;
    return node != root ? node->next : NULL;
}

xmlNode *bm_xml_find(xmlNode *root, const char *name)
{
    xmlNode *node = root;

    while (node != NULL && !bm_xml_is(node, name))
        node = bm_xml_following(root, node);
    return node;
}

xmlChar *bm_xml_attribute(const xmlNode *node, const char *name)
{
    return node != NULL ? xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name)
                        : NULL;
}

double bm_xml_number(const xmlNode *node, const char *name)
{
    xmlChar *text = bm_xml_attribute(node, name);
    double x = NAN;

    if (text != NULL) {
        char *end = NULL;

        x = strtod((const char *)text, &end);
        if (end == (const char *)text || !(fabs(x) <= BM_FARTHEST))
            x = NAN;
    }
    xmlFree(text);
    return x;
}

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

bm_status bm_xml_parse(xmlDoc **out, const char *path, const char *bytes,
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
