/*
 * scratch.h - a directory of a test's own, which goes when the test ends, and
 * whole files in and out of it.
 */
#ifndef BM_TESTS_SUPPORT_SCRATCH_H
#define BM_TESTS_SUPPORT_SCRATCH_H

#include "tests/support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct scratch {
    char path[64];
} scratch;

static inline scratch scratch_open(void)
{
    scratch s = {"/tmp/bmuf-test-XXXXXX"};

    assert_non_null(mkdtemp(s.path));
    return s;
}

/* Its path and a name, valid until the fourth call from here. */
static inline const char *scratch_file(const scratch *s, const char *name)
{
    static char path[4][400];
    static unsigned turn;
    char *out = path[turn++ % 4];

    snprintf(out, sizeof path[0], "%s/%s", s->path, name);
    return out;
}

/* How many files there are, hidden ones too; removes them if told to. */
static inline int scratch_count(const scratch *s, bool removing)
{
    DIR *directory = opendir(s->path);
    struct dirent *row = NULL;
    int n = 0;

    assert_non_null(directory);
    while ((row = readdir(directory)) != NULL) {
        if (strcmp(row->d_name, ".") == 0 || strcmp(row->d_name, "..") == 0)
            continue;
        n++;
        if (removing && unlink(scratch_file(s, row->d_name)) != 0)
            rmdir(scratch_file(s, row->d_name));
    }
    closedir(directory);
    return n;
}

static inline void scratch_close(const scratch *s)
{
    scratch_count(s, true);
    assert_int_equal(rmdir(s->path), 0);
}

/* Without any care for disks: what is under test has that. */
static inline void spill(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A whole file with a '\0' behind it; free(). */
static inline char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    long n = 0;

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    n = ftell(file);
    rewind(file);
    data = calloc((size_t)n + 1, 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)n, file), n);
    fclose(file);
    *size = (size_t)n;
    return data;
}

#endif
