#include "tests/support/folder.h"

#include "tests/support/support.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static char folder[] = "/tmp/bmuf_test_XXXXXX";

void run_tool(char *const words[])
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

int folder_remove(void **state)
{
    (void)state;
    run_tool((char *[]){"rm", "-rf", folder, NULL});
    return 0;
}

const char *in_folder(const char *name)
{
    static char paths[8][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 8];

    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

void write_bytes(const char *name, const void *bytes, size_t n)
{
    spill(in_folder(name), bytes, n);
}

void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

void write_gzip(const char *name, const char *text)
{
    gzFile file = gzopen(in_folder(name), "wb");

    assert_non_null(file);
    assert_int_equal(gzputs(file, text), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

const char *real_data(const char *name)
{
    static char path[PATH_MAX];
    const char *data = getenv("BMUF_DATA");

    snprintf(path, sizeof path, "%s/%s", data != NULL ? data : BMUF_DATA, name);
    if (access(path, R_OK) == 0)
        return path;
    print_message("skipped: %s does not exist (BMUF_DATA)\n", path);
    return NULL;
}

void unpack(const char *archive)
{
    run_tool((char *[]){"tar", "-xf", (char *)archive, "-C", folder, NULL});
}

/* ---- scratch directories ------------------------------------------------- */

scratch scratch_open(void)
{
    scratch s = {"/tmp/bmuf-test-XXXXXX"};

    assert_non_null(mkdtemp(s.path));
    return s;
}

const char *scratch_file(const scratch *s, const char *name)
{
    static char path[4][400];
    static unsigned turn;
    char *out = path[turn++ % 4];

    snprintf(out, sizeof path[0], "%s/%s", s->path, name);
    return out;
}

int scratch_count(const scratch *s, bool removing)
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

void scratch_close(const scratch *s)
{
    scratch_count(s, true);
    assert_int_equal(rmdir(s->path), 0);
}

void spill(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

char *slurp(const char *path, size_t *size)
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
