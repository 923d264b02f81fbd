/*
 * folder.h - a folder of its own for a test program's files, gone at its end.
 */
#ifndef BM_TESTS_SUPPORT_FOLDER_H
#define BM_TESTS_SUPPORT_FOLDER_H

#include <stddef.h>

/* For cmocka_run_group_tests. */
int folder_make(void **state);
int folder_remove(void **state);

/* The path of a file in it; good for the next eight calls. */
const char *in_folder(const char *name);

void write_bytes(const char *name, const void *bytes, size_t n);
void write_text(const char *name, const char *text);

/* A file of the real data, or NULL: then the test says so and skips. */
const char *real_data(const char *name);

/* Unpacks a tar archive of the real data into the folder. */
void unpack(const char *archive);

/* Runs a program with its words, the last of them NULL; it has to succeed. */
void run_tool(char *const words[]);

#endif
