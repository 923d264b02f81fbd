/* version.h - the version of this program. */
#ifndef BM_CLI_HELP_VERSION_H
#define BM_CLI_HELP_VERSION_H

#include <jansson.h>

/* "0.1.0 (revision)"; static. */
const char *bm_version(void);

/* An object with the version, the libraries and the number of cores; NULL: no
 * memory. */
json_t *bm_version_json(void);

#endif
