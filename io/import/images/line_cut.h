/*
 * line_cut.h - cuts a line out of a page along its baseline. The baseline becomes
 * straight and horizontal; a pixel beside it stays at its distance from it. What
 * is outside of the line's polygon, or of the page, gets the grey of its paper.
 */
#ifndef BM_IO_IMPORT_IMAGES_LINE_CUT_H
#define BM_IO_IMPORT_IMAGES_LINE_CUT_H

#include "io/import/images/line_image.h"

enum { BM_MOST_POINTS = 1000 }; /* of a polygon or a baseline */

typedef struct bm_point {
    double x, y; /* pixels from the upper left corner, downwards */
} bm_point;

/* Where a line is on its page. */
typedef struct bm_line_shape {
    double width, height; /* of the page, in its units; 0: those are pixels */
    bm_point *polygon;    /* [n_polygon], at least 3; owned */
    size_t n_polygon;
    bm_point *baseline; /* [n_baseline], left to right; owned */
    size_t n_baseline;  /* less than 2: none, and the line is cut upright */
    char *fault;        /* what is wrong with the line; NULL: nothing; owned */
} bm_line_shape;

/* Cuts a line; units of another size are scaled to the image. A shape that is
 * outside of the page, too large, of a page with other proportions, or with a
 * fault sets *problem, with the name of the file. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_line_cut(bm_line_image *out, const bm_line_image *page,
                                 const bm_line_shape *shape, const char *path,
                                 bm_problem *problem);

/* Shapes as texts: "2480,3508;10,20 30,20 30,40;12,38 28,38", without a
 * baseline it ends after the second ';'. After a third one is a fault, and what
 * is before it is of no use. Reading fails with BM_ERR_FORMAT and a message that
 * says what is wrong, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_line_shape_read(bm_line_shape *out, const char *text);
void bm_line_shape_free(bm_line_shape *shape);

#endif
