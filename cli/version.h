/* version.h - version and libraries of this program. */
#ifndef BM_CLI_VERSION_H
#define BM_CLI_VERSION_H

#include <stdio.h>

/* "0.1.0 (revision)"; static. */
const char *bm_version(void);

/* Prints the version, the libraries and the instruction set in use. */
void bm_version_print(FILE *out);

#endif
