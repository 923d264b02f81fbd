/* page_parts.h - internal to page_*.c: a page that is read. */
#ifndef BM_IO_IMPORT_LINES_PAGE_PARTS_H
#define BM_IO_IMPORT_LINES_PAGE_PARTS_H

#include "io/import/lines/line_taker.h"

#include <libxml/tree.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { BM_MOST_REGIONS = 4096 }; /* of a reading order */

/* A line, and where it is in the order. */
typedef struct bm_page_place {
    xmlNode *node;
    size_t region, at;
} bm_page_place;

typedef struct bm_page {
    const char *path;
    const bm_line_taker *taker;
    xmlNode *root;
    bool alto;
    char image[PATH_MAX], stem[NAME_MAX + 1];
    xmlChar *order[BM_MOST_REGIONS]; /* ids of regions */
    size_t n_order;
    bm_page_place *places;
    size_t n, room;
    /* Of one line. */
    FILE *shape;
    size_t n_points;
    char fault[1000]; /* its own, with the place, if it has one */
} bm_page;

/* Notes what is wrong with a line. */
void bm_page_fault(bm_page *p, const xmlNode *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* p->order <- the ids of regions below `order`, by the indices of their groups. */
void bm_page_order(bm_page *p, xmlNode *order);

/* The place of a line's region in the reading order; after it: not there. */
size_t bm_page_region(const bm_page *p, const xmlNode *node);

/* Write to p->shape; false, with a fault, if it is invalid. A baseline may be
 * missing, a polygon not. */
bool bm_page_polygon(bm_page *p, const xmlNode *line);
bool bm_page_baseline(bm_page *p, const xmlNode *line);

#endif
