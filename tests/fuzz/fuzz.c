/* fuzz.c - what all targets share: their list, their folder, and the default
 * options of the sanitizers. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define X(name) extern const fuzz_target fuzz_##name;
FUZZ_TARGETS(X)
#undef X

const fuzz_target *const fuzz_targets[] = {
#define X(name) &fuzz_##name,
    FUZZ_TARGETS(X)
#undef X
        NULL,
};

static char folder[64];

const fuzz_target *fuzz_find(const char *name)
{
    for (size_t i = 0; fuzz_targets[i] != NULL; i++)
        if (strcmp(fuzz_targets[i]->name, name) == 0)
            return fuzz_targets[i];
    return NULL;
}

void fuzz_broken(const char *file, int line, const char *rule)
{
    fprintf(stderr, "%s:%d: broken rule: %s\n", file, line, rule);
    abort();
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void clean_up(void)
{
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* In memory, where the system has a place for that. */
static void make_folder(void)
{
    bool shm = access("/dev/shm", W_OK) == 0;

    snprintf(folder, sizeof folder, "%s/bmuf-fuzz-XXXXXX",
             shm ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(73);
    }
    atexit(clean_up);
}

const char *fuzz_path(const char *name)
{
    static char paths[4][128];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    if (folder[0] == '\0')
        make_folder();
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

FILE *fuzz_null(void)
{
    static FILE *null;

    if (null == NULL)
        null = fopen("/dev/null", "w");
    FUZZ_RULE(null != NULL);
    return null;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    size_t n = 0;

    FUZZ_RULE(text != NULL);
    for (size_t i = 0; i < size; i++)
        if (data[i] != '\0')
            text[n++] = (char)data[i];
    text[n] = '\0';
    return text;
}

size_t fuzz_header_end(const uint8_t *data, size_t size)
{
    size_t depth = 0;
    bool quoted = false;

    for (size_t i = 8; i < size; i++) {
        if (quoted && data[i] == '\\')
            i++;
        else if (data[i] == '"')
            quoted = !quoted;
        else if (!quoted && data[i] == '{')
            depth++;
        else if (!quoted && data[i] == '}' && depth-- <= 1) {
            for (i++; i < size && data[i] == ' ';)
                i++;
            return i;
        }
    }
    return size;
}

size_t fuzz_repair_header(uint8_t *data, size_t size, size_t room)
{
    uint64_t n = 0;

    (void)room;
    if (size < 8)
        return size;
    n = fuzz_header_end(data, size) - 8;
    for (size_t i = 0; i < 8; i++)
        data[i] = (uint8_t)(n >> (8 * i));
    return size;
}

static void write_input(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    FUZZ_RULE(fd >= 0);
    FUZZ_RULE(write(fd, data, size) == (ssize_t)size);
    FUZZ_RULE(close(fd) == 0);
}

void fuzz_run(const fuzz_target *target, const uint8_t *data, size_t size)
{
    const char *path = fuzz_path(target->file);

    write_input(path, data, size);
    target->run(path, data, size);
}

/* Memory that cannot be had is a status too: malloc returns NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512:"
           "quarantine_size_mb=16:malloc_context_size=12:detect_leaks=1";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1";
}

/* What HDF5, and libsndfile by libvorbis, lose in a damaged file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\nleak:libvorbis\n";
}
