/*
 * replay.c - runs the inputs of a corpus, whole and cut short:
 *
 *     fuzz_replay CORPUS [NAME..]    CORPUS/NAME has the inputs of a target
 *
 * Without names it runs all targets. Fails if a target has no input. Built in
 * every build, so that no fault that was found returns.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 20, CUTS = 8 };

static size_t read_input(const char *path, uint8_t *data)
{
    FILE *file = fopen(path, "rb");
    size_t size = 0;

    FUZZ_RULE(file != NULL);
    size = fread(data, 1, LARGEST, file);
    FUZZ_RULE(feof(file) && !ferror(file));
    fclose(file);
    return size;
}

/* A copy of exactly that size, so that reading behind it is noticed. */
static void run_cut(const fuzz_target *t, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    FUZZ_RULE(copy != NULL);
    memcpy(copy, data, size);
    fuzz_run(t, copy, size);
    free(copy);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Returns the number of inputs. */
static size_t replay(const fuzz_target *t, const char *corpus, uint8_t *data)
{
    char directory[PATH_MAX / 2], path[PATH_MAX];
    struct dirent **rows = NULL;
    size_t inputs = 0;
    int n = 0;

    snprintf(directory, sizeof directory, "%s/%s", corpus, t->name);
    n = scandir(directory, &rows, NULL, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, rows[i]->d_name);
        if (rows[i]->d_name[0] != '.') {
            size_t size = read_input(path, data);

            fprintf(stderr, "%s\n", path); /* the last one is at fault */
            for (size_t k = 0; k <= CUTS; k++)
                run_cut(t, data, size * k / CUTS);
            inputs++;
        }
        free(rows[i]);
    }
    free(rows);
    return inputs;
}

int main(int argc, char **argv)
{
    uint8_t *data = malloc(LARGEST);
    int failed = 0;

    if (argc < 2 || data == NULL) {
        fprintf(stderr, "usage: fuzz_replay CORPUS [NAME..]\n");
        free(data);
        return 64;
    }
    for (int i = 2; i < argc; i++)
        if (fuzz_find(argv[i]) == NULL) {
            fprintf(stderr, "no target %s\n", argv[i]);
            failed = 64;
        }
    if (freopen("/dev/null", "w", stdout) == NULL)
        failed = 74;
    for (size_t i = 0; fuzz_targets[i] != NULL && failed == 0; i++) {
        int wanted = argc == 2;

        for (int k = 2; k < argc; k++)
            wanted |= strcmp(argv[k], fuzz_targets[i]->name) == 0;
        if (wanted && replay(fuzz_targets[i], argv[1], data) == 0) {
            fprintf(stderr, "%s/%s has no inputs\n", argv[1],
                    fuzz_targets[i]->name);
            failed = 66;
        }
    }
    free(data);
    return failed;
}
