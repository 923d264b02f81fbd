/* fields.h - reads the fields of an event that is being written to a
 * journal. */
#ifndef BM_CLI_TELEMETRY_FIELDS_H
#define BM_CLI_TELEMETRY_FIELDS_H

#include "core/log.h"

/* A number; NaN: there is none of that name, or it is a text. */
double bm_field_number(const bm_field *fields, const char *key);

/* A text, borrowed; NULL: there is none of that name, or it is a number. */
const char *bm_field_text(const bm_field *fields, const char *key);

#endif
