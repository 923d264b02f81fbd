#include "tests/support/folder.h"

#include "tests/support/support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    FILE *file = fopen(in_folder(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

const char *real_data(const char *name)
{
    static char path[PATH_MAX];
    const char *data = getenv("BMUF_DATA");

    snprintf(path, sizeof path, "%s/%s", data != NULL ? data : BMUF_DATA, name);
    if (access(path, R_OK) == 0)
        return path;
    print_message("%s is not there (BMUF_DATA)\n", path);
    return NULL;
}

void unpack(const char *archive)
{
    run_tool((char *[]){"tar", "-xf", (char *)archive, "-C", folder, NULL});
}
