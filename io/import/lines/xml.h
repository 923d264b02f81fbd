/*
 * xml.h - an XML file as a tree of nodes. Names of elements count without their
 * namespaces, so that every version of a format is read.
 */
#ifndef BM_IO_IMPORT_LINES_XML_H
#define BM_IO_IMPORT_LINES_XML_H

#include "core/status.h"

#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>

/* *out <- the document of these bytes; xmlFreeDoc, also after a failure. `path` is
 * for messages. Fails with BM_ERR_FORMAT, with line and column, or
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_xml_parse(xmlDoc **out, const char *path,
                                  const char *bytes, size_t size);

/* Is it an element of this name? */
bool bm_xml_is(const xmlNode *node, const char *name);

/* The first child of this name, NULL: there is none; `node` may be NULL. */
xmlNode *bm_xml_child(const xmlNode *node, const char *name);

/* The next node below `root`, parents first; NULL after the last one. */
xmlNode *bm_xml_following(const xmlNode *root, xmlNode *node);

/* The first of this name, `root` and all below it; NULL: there is none. */
xmlNode *bm_xml_find(xmlNode *root, const char *name);

/* NULL: it is missing; xmlFree. `node` may be NULL. */
xmlChar *bm_xml_attribute(const xmlNode *node, const char *name);

#define BM_FARTHEST 1e6 /* limit of a coordinate */

/* The number in an attribute; NAN if it is missing or beyond BM_FARTHEST. */
double bm_xml_number(const xmlNode *node, const char *name);

#endif
