/* page_order.c - the order of regions that a page in PAGE XML gives. */
#include "io/import/lines/page_parts.h"
#include "io/import/lines/xml.h"

#include <math.h>
#include <stdlib.h>

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
    double index = bm_xml_number(node, "index");
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

void bm_page_order(bm_page *p, xmlNode *order)
{
    reference found[BM_MOST_REGIONS];
    size_t n = 0;

    for (xmlNode *node = order; node != NULL && n < BM_MOST_REGIONS;
         node = bm_xml_following(order, node))
        if (node->type == XML_ELEMENT_NODE &&
            xmlHasProp(node, (const xmlChar *)"regionRef") != NULL) {
            found[n] = (reference){node, n};
            n++;
        }
    if (n > 0)
        qsort(found, n, sizeof *found, compare_references);
    for (size_t i = 0; i < n; i++) {
        p->order[p->n_order] = bm_xml_attribute(found[i].node, "regionRef");
        p->n_order += p->order[p->n_order] != NULL;
    }
}

size_t bm_page_region(const bm_page *p, const xmlNode *node)
{
    size_t found = p->n_order;

    for (; node != NULL && node != p->root && found == p->n_order;
         node = node->parent) {
        xmlChar *id = bm_xml_attribute(node, "id");

        found = 0;
        while (found < p->n_order &&
               (id == NULL || !xmlStrEqual(id, p->order[found])))
            found++;
        xmlFree(id);
    }
    return found;
}
