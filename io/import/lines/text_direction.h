/* text_direction.h - line images of Hebrew, Arabic and other writing from right to
 * left: CTC learns labels in the order of frames alone, so that frames must begin
 * at the right end of such lines. */
#ifndef BM_IO_IMPORT_LINES_TEXT_DIRECTION_H
#define BM_IO_IMPORT_LINES_TEXT_DIRECTION_H

#include "io/import/manifest/manifest.h"

#include <stdbool.h>

/* More than half of the texts that have letters run from right to left. `logs`:
 * says so, or warns of the texts that run against the others. */
bool bm_texts_run_left(const bm_manifest *m, bool logs);

#endif
