#include "tests/support/remains.h"

#include "io/model/checkpoint.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <limits.h>
#include <sys/stat.h>

static const char *path_in(const char *run, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", run, name);
    return in_folder(path);
}

json_t *journal(const char *run)
{
    FILE *file = fopen(path_in(run, "journal.jsonl"), "r");
    json_t *all = json_array();
    char *line = NULL;
    size_t room = 0;

    assert_non_null(file);
    while (getline(&line, &room, file) >= 0) {
        json_error_t error;
        json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (row == NULL)
            fail_msg("%s: %s: %s", run, error.text, line);
        assert_true(json_is_object(row));
        json_array_append_new(all, row);
    }
    free(line);
    fclose(file);
    return all;
}

int events(const char *run, const char *kind)
{
    FILE *file = fopen(path_in(run, "journal.jsonl"), "r");
    char start[64], *line = NULL;
    size_t room = 0;
    int n = 0;

    if (file == NULL)
        return 0;
    snprintf(start, sizeof start, "{\"event\":\"%s\"", kind);
    while (getline(&line, &room, file) >= 0)
        n += strncmp(line, start, strlen(start)) == 0 &&
             strchr(line, '\n') != NULL;
    free(line);
    fclose(file);
    return n;
}

bool event_comes(program *p, const char *run, const char *kind, int n)
{
    while (events(run, kind) < n) {
        if (!program_runs(p))
            return false;
        pause_for(0.001);
    }
    return true;
}

json_t *last_event(const char *run, const char *kind)
{
    json_t *all = journal(run), *out = NULL;

    for (size_t i = json_array_size(all); i-- > 0 && out == NULL;) {
        json_t *row = json_array_get(all, i);
        if (strcmp(text(row, "event"), kind) == 0)
            out = json_incref(row);
    }
    json_decref(all);
    if (out == NULL)
        fail_msg("%s: no event '%s'", run, kind);
    return out;
}

void assert_same_model(const char *run, const char *other)
{
    json_t *end[] = {last_event(run, "end"), last_event(other, "end")};
    size_t size[2];
    char *model[] = {slurp(path_in(run, "model.safetensors"), &size[0]),
                     slurp(path_in(other, "model.safetensors"), &size[1])};

    if (strcmp(text(end[0], "digest"), text(end[1], "digest")) != 0)
        fail_msg("%s has ended with %s, %s with %s", run,
                 text(end[0], "digest"), other, text(end[1], "digest"));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(model[0], model[1], size[0]);
    for (int i = 0; i < 2; i++) {
        json_decref(end[i]);
        free(model[i]);
    }
}

const char *checkpoint_of(const char *run, int blocks)
{
    static char path[PATH_MAX];

    bm_checkpoint_path(path_in(run, "checkpoints"), blocks, path, sizeof path);
    return path;
}

int checkpoints(const char *run, int *newest)
{
    enum { MOST = 256 };
    int64_t list[MOST] = {0};
    size_t n = bm_checkpoint_list(path_in(run, "checkpoints"), list, MOST);

    *newest = (int)list[0];
    return (int)n;
}

void copy_run(const char *from, const char *to)
{
    remove_run(to);
    run_tool((char *[]){"cp", "-r", (char *)in_folder(from),
                        (char *)in_folder(to), NULL});
}

void remove_run(const char *run)
{
    run_tool((char *[]){"rm", "-rf", (char *)in_folder(run), NULL});
}

void damage(const char *path, double share, size_t bytes)
{
    size_t size = 0;
    char *data = slurp(path, &size);
    size_t from = (size_t)(share * (double)size);

    assert_true(from + bytes <= size);
    for (size_t i = from; i < from + bytes; i++)
        data[i] ^= 0x15;
    spill(path, data, size);
    free(data);
}

void cut_off(const char *path, double share)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, (off_t)(share * (double)info.st_size)), 0);
}
