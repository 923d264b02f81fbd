/* text_direction.h - texts of line images that are written from right to left:
 * frames run from left to right, and CTC learns labels in the order of frames
 * alone. */
#ifndef BM_IO_IMPORT_LINES_TEXT_DIRECTION_H
#define BM_IO_IMPORT_LINES_TEXT_DIRECTION_H

#include "io/import/manifest/manifest.h"

/* Warns if texts have characters of Hebrew, Arabic or another script from right
 * to left (classes R and AL of Unicode's bidirectional algorithm), and counts
 * them. */
void bm_warn_of_right_to_left(const bm_manifest *m);

#endif
