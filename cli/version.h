/* version.h - what this program was built from and with. */
#ifndef BM_CLI_VERSION_H
#define BM_CLI_VERSION_H

#include <stdio.h>

/* "0.1.0" and, if known, the git revision. */
const char *bm_version(void);

/* With the libraries and the processor's features in use. */
void bm_version_print(FILE *out);

#endif
