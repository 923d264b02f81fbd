/*
 * fuzz_config.c - the settings of a training run: an INI file and, behind a
 * line "---", one "section.key=value" of --set per line.
 */
#include "cli/settings.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Splits the text; returns the number of assignments. */
static int split(char *text, bm_arguments *a, const bm_flag *flag)
{
    static const char mark[] = "\n---\n";
    char *line = strstr(text, mark), *rest = NULL;

    if (line == NULL)
        return 0;
    line[1] = '\0';
    line += sizeof mark - 1;
    for (line = strtok_r(line, "\n", &rest);
         line != NULL && a->n_given < BM_MOST_GIVEN;
         line = strtok_r(NULL, "\n", &rest)) {
        a->given[a->n_given].flag = flag;
        a->given[a->n_given++].value = line;
    }
    return a->n_given;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    FUZZ_RULE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static char *print(const bm_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    FUZZ_RULE(file != NULL);
    FUZZ_RULE(bm_config_write(config, bm_train_sections(), file) == BM_OK);
    FUZZ_RULE(fclose(file) == 0);
    return text;
}

/* A run writes its settings, and is resumed with what it wrote. */
static void read_back(const bm_config *config)
{
    static const bm_arguments none;
    bm_settings settings = {0};
    bm_config *again = NULL;
    char *text = print(config), *other = NULL;

    write_file(fuzz_path("again.ini"), text);
    FUZZ_RULE(bm_settings_read(&none, fuzz_path("again.ini"), &again,
                               &settings) == BM_OK);
    other = print(again);
    FUZZ_RULE(strcmp(text, other) == 0);
    free(text);
    free(other);
    bm_config_free(again);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const bm_flag set = {"set", "SECTION.KEY=VALUE", "", 0, true};
    static bm_arguments a;
    char *text = fuzz_text(data, size);
    bm_settings settings = {0};
    bm_config *config = NULL;

    a = (bm_arguments){0};
    if (split(text, &a, &set) > 0)
        write_file(path, text);
    if (bm_settings_read(&a, path, &config, &settings) == BM_OK)
        read_back(config);
    bm_config_free(config);
    free(text);
}

const fuzz_target fuzz_config = {"config", "run.ini", run, NULL};
