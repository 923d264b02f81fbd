/*
 * dump.h - the arrays of an .npz file, read by what zip and NumPy say of their
 * formats: stored entries, version 1 headers, little-endian floats.
 */
#ifndef BM_TESTS_SUPPORT_DUMP_H
#define BM_TESTS_SUPPORT_DUMP_H

#include <stddef.h>

typedef struct dump_array {
    char name[64]; /* without .npy */
    size_t rows, columns;
    const float *x; /* [rows, columns], owned by the dump */
} dump_array;

typedef struct dump {
    size_t n;
    dump_array *arrays;
    char *bytes;
} dump;

/* A file of the folder; fails if anything about it is odd. */
dump dump_read(const char *name);
void dump_free(dump *d);

/* The one of that name; fails if there is none. */
const dump_array *dump_find(const dump *d, const char *name);

#endif
