/* version.h - the version of this program. */
#ifndef BM_CLI_HELP_VERSION_H
#define BM_CLI_HELP_VERSION_H

/* "0.1.0 (revision)"; static. */
const char *bm_version(void);

#endif
