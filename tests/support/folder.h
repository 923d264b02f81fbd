/*
 * folder.h - temporary directories and their files: one folder for a whole test
 * program, scratch directories for single tests. Functions fail the test if a
 * file cannot be read or written.
 */
#ifndef BM_TESTS_SUPPORT_FOLDER_H
#define BM_TESTS_SUPPORT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* ---- the folder of a test program ---------------------------------------- */

/* Setup and teardown of cmocka_run_group_tests: make it, remove it. */
int folder_make(void **state);
int folder_remove(void **state);

/* The path of a file in it, valid until the eighth call from here. */
const char *in_folder(const char *name);

void write_bytes(const char *name, const void *bytes, size_t n);
void write_text(const char *name, const char *text);
void write_gzip(const char *name, const char *text); /* compressed */

/* The path of a file of the real data. NULL: it is missing, which is printed;
 * the test is to skip. */
const char *real_data(const char *name);

/* Unpacks a tar archive of the real data into the folder. */
void unpack(const char *archive);

/* Runs a program with these words, the last of them NULL; fails unless it exits
 * with 0. */
void run_tool(char *const words[]);

/* ---- scratch directories ------------------------------------------------- */

typedef struct scratch {
    char path[64];
} scratch;

/* A new temporary directory; scratch_close removes it with its files, but not
 * with files in sub-directories. */
scratch scratch_open(void);
void scratch_close(const scratch *s);

/* The path of a file in it, valid until the fourth call from here. */
const char *scratch_file(const scratch *s, const char *name);

/* The number of files, hidden ones too; removes them if `removing`. */
int scratch_count(const scratch *s, bool removing);

/* Writes and reads a whole file. What slurp returns ends with a '\0', which
 * *size does not count; free(). */
void spill(const char *path, const void *data, size_t n);
char *slurp(const char *path, size_t *size);

#endif
