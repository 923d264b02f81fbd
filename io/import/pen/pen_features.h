/*
 * pen_features.h - frames of the path of a pen. The path is cut into equal steps,
 * so that frames do not depend on the tablet's rate or on the speed of the hand.
 * Each stroke gives the points that are a step apart on it from its beginning, and
 * its end. A frame is what leads to a point from the one before it:
 *
 *     dx, dy   in steps
 *     y        of the point, in heights, 0 in the middle of the segment
 *     up       1 if the pen was up, else 0; the way to the next stroke is one
 *              frame, unless the tablet recorded the pen in the air
 *     speed    of the hand at the point, over its mean; 0 if the pen was up
 */
#ifndef BM_IO_IMPORT_PEN_PEN_FEATURES_H
#define BM_IO_IMPORT_PEN_PEN_FEATURES_H

#include "io/features/feature_chain.h"
#include "io/import/pen/unipen.h"

enum { BM_PEN_FEATURES = 5 };

/* The height of a path: its largest y minus its smallest, of the pen on the
 * paper. 0 if it is empty. */
double bm_pen_height(const bm_unipen *u, const bm_pen_path *path);

/*
 * out <- the frames; out->n = 0 if there are less than two points. height > 0: of
 * the writer's segments. step: in heights. A path of more than BM_MOST_PEN_STEPS
 * steps has out->n = 0 as well: its height is wrong. Fails with BM_ERR_MEMORY.
 */
enum { BM_MOST_PEN_STEPS = 1 << 20 };
BM_CHECKED bm_status bm_pen_frames(const bm_unipen *u, const bm_pen_path *path,
                                   double height, double step, bm_frames *out);

#endif
