/*
 * unipen.h - files of UNIPEN 1.0 (Guyon et al. 1994): the path of a pen, and
 * segments of it with labels.
 *
 *     .COORD X Y T          what the numbers of a point are; else X Y
 *     .INCLUDE nic/a.dat    read in its place
 *     .WRITER_ID ANTON      who wrote what follows
 *     .SEGMENT WORD 0-14,16 OK "abdomen"
 *     .PEN_DOWN             points follow; so after .PEN_UP, if it has some
 *
 * A delineation counts components from 0: each .PEN_DOWN, and each .PEN_UP that
 * has points. "2:5-4:9" is from point 5 of component 2 to point 9 of component
 * 4. Other keywords are passed over.
 */
#ifndef BM_IO_IMPORT_PEN_UNIPEN_H
#define BM_IO_IMPORT_PEN_UNIPEN_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_pen_point {
    double x, y, t; /* t: as .COORD's T has it, else the number of the point */
} bm_pen_point;

typedef struct bm_pen_component {
    size_t first, n; /* points */
    bool down;
} bm_pen_component;

typedef struct bm_pen_segment {
    char *type, *delineation, *label, *writer; /* "": none */
    size_t line;                               /* of its file, from 1 */
} bm_pen_segment;

/* What a file holds. Starts as {0}; free with bm_unipen_free. */
typedef struct bm_unipen {
    bm_pen_point *points;
    bm_pen_component *components;
    bm_pen_segment *segments;
    size_t n_points, n_components, n_segments;
    size_t room_points, room_components, room_segments;
    char writer[256]; /* of what follows */
    int columns[3];   /* of X, Y, T in a point; -1: none */
    int width;        /* numbers of a point; 0: .COORD has not said */
} bm_unipen;

/*
 * Reads a file into an empty *u, plain or compressed with gzip. An .INCLUDE is
 * relative to the folder of `path`, or to one of the folders above it, or to
 * `include` in one of these; unless `quiet`, a warning names one that is not
 * there. Fails with BM_ERR_FORMAT, naming file and line, if points are no numbers
 * or too many, or files include each other; with BM_ERR_MISSING, BM_ERR_IO or
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_unipen_read(bm_unipen *u, const char *path, bool quiet);
void bm_unipen_free(bm_unipen *u);

/* A part of a component: `n` points from `first` on, of all points. */
typedef struct bm_pen_part {
    size_t first, n;
    bool down;
} bm_pen_part;

/* Parts of the path, in memory that is reused. Starts as {0}; free(parts). */
typedef struct bm_pen_path {
    bm_pen_part *parts;
    size_t n, room;
} bm_pen_path;

/* The components that a delineation names, without empty ones. *why: what is
 * wrong with it, static; NULL: nothing. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_unipen_path(const bm_unipen *u, const char *delineation,
                                    bm_pen_path *out, const char **why);

#endif
