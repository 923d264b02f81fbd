#include "tests/cli/tune/searched.h"

#include "core/file/file.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char configuration[] = "[data]\n"
                                    "train = train\n"
                                    "dev = dev\n"
                                    "[model]\n"
                                    "net = stack:3 linear:16 tanh linear\n"
                                    "[train]\n"
                                    "epochs = 4\n"
                                    "rate = 0.01\n"
                                    "[job]\n"
                                    "workers = 2\n"
                                    "device = cpu\n"
                                    "[block]\n"
                                    "steps = 2\n"
                                    "[tune]\n"
                                    "rungs = 2\n"
                                    "seeds = 2\n"
                                    "finalists = 1\n";

int search_set_up(void **state)
{
    if (digits_set_up(state) != 0)
        return -1;
    return bm_file_write(in_folder("tune.ini"), configuration,
                         strlen(configuration)) == BM_OK
               ? 0
               : -1;
}

char *read_whole(const char *directory, const char *name)
{
    char path[200], *text = NULL;
    size_t size = 0;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_ok(bm_file_read(in_folder(path), 1 << 24, &text, &size));
    return text;
}

int split_row(const char *line, char field[FIELDS][64])
{
    int n = 0;

    for (const char *at = line; at != NULL && n < FIELDS; n++) {
        snprintf(field[n], 64, "%.*s", (int)strcspn(at, "\t"), at);
        at = strchr(at, '\t');
        at = at != NULL ? at + 1 : NULL;
    }
    return n;
}

void row_of(const char *directory, const char *trial, char field[FIELDS][64])
{
    char *text = read_whole(directory, "trials.tsv"), *rest = NULL;
    size_t n = strlen(trial);
    int found = 0;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, trial, n) != 0 || line[n] != '\t')
            continue;
        found++;
        split_row(line, field);
    }
    free(text);
    assert_true(found > 0);
}

void field_of(const char *directory, const char *trial, const char *rung,
              const char *column, char out[64])
{
    char *text = read_whole(directory, "trials.tsv"), *rest = NULL;
    char head[FIELDS][64], row[FIELDS][64];
    int n = 0;

    out[0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (n == 0) {
            n = split_row(line, head);
            continue;
        }
        split_row(line, row);
        for (int k = 0; k < n; k++)
            if (strcmp(row[0], trial) == 0 && strcmp(row[2], rung) == 0 &&
                strcmp(head[k], column) == 0)
                snprintf(out, 64, "%s", row[k]);
    }
    free(text);
}
