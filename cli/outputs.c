#include "cli/outputs.h"

#include "core/file/file.h"
#include "core/file/search_folder.h"
#include "core/text/words.h"
#include "io/shard/shard.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The files of a folder that commands read, besides shards and lists of Kaldi. */
static const char set_files[] =
    "vocab.txt text text.gz segments segments.gz utt2spk utt2spk.gz";
static const char run_files[] =
    "config.ini journal.jsonl attempt run.lock best.ini model.safetensors "
    "model-best.safetensors model-ema.safetensors";

/* A path as a folder and a name in it. */
typedef struct place {
    char folder[PATH_MAX], name[PATH_MAX];
} place;

static place place_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    place p = {.folder = "."};

    if (slash != NULL)
        snprintf(p.folder, sizeof p.folder, "%.*s", (int)(slash - path + 1),
                 path);
    bm_file_name(path, p.name, sizeof p.name);
    return p;
}

/* Also of files that do not exist yet. */
static bool are_one(const char *path, const char *other)
{
    place a = place_of(path), b = place_of(other);

    return bm_is_same_file(path, other) ||
           (strcmp(a.name, b.name) == 0 && bm_is_same_file(a.folder, b.folder));
}

/* Is `path` the input, or a file of its folder? */
static bool is_read(const char *path, const char *input)
{
    place p = place_of(path);

    if (!bm_is_folder(input))
        return bm_is_same_file(path, input);
    return access(path, F_OK) == 0 && bm_is_same_file(p.folder, input) &&
           (bm_ends_with(p.name, BM_SHARD_SUFFIX) ||
            bm_ends_with(p.name, ".scp") || bm_ends_with(p.name, ".scp.gz") ||
            bm_is_word_of(p.name, set_files));
}

/* Is the folder the one of a run that has this name? */
static bool is_inside_run(const char *folder, const char *name)
{
    char run[PATH_MAX + 4], inside[PATH_MAX + 20];

    snprintf(run, sizeof run, "%s/..", folder);
    snprintf(inside, sizeof inside, "%s/%s", run, name);
    return bm_run_folder_is(run) && bm_is_same_file(folder, inside);
}

static bool is_of_run(const char *path)
{
    place p = place_of(path);
    bool model = bm_ends_with(p.name, ".safetensors");

    if (access(path, F_OK) != 0) /* it may be written later */
        return bm_run_folder_is(p.folder) && bm_is_word_of(p.name, run_files);
    if (strncmp(p.name, "rank-", 5) == 0)
        return is_inside_run(p.folder, "trace");
    if (bm_run_folder_is(p.folder))
        return model || bm_is_word_of(p.name, run_files);
    return model && is_inside_run(p.folder, "checkpoints");
}

static bm_status check(const bm_output *o, const char *const *inputs)
{
    for (; *inputs != NULL; inputs++)
        if (is_read(o->path, *inputs))
            return BM_FAIL(BM_ERR_CREATE,
                           "%s %s would replace what this command reads; give "
                           "another file",
                           o->option, o->path);
    if (is_of_run(o->path))
        return BM_FAIL(BM_ERR_CREATE,
                       "%s %s would replace a file of a run or of a search; "
                       "give another file",
                       o->option, o->path);
    return BM_OK;
}

bm_status bm_outputs_check(const bm_output *outputs, size_t n,
                           const char *const *inputs)
{
    for (size_t i = 0; i < n; i++) {
        if (outputs[i].path == NULL)
            continue;
        BM_TRY(check(&outputs[i], inputs));
        for (size_t k = 0; k < i; k++)
            if (outputs[k].path != NULL &&
                are_one(outputs[k].path, outputs[i].path))
                return BM_FAIL(BM_ERR_CREATE,
                               "%s and %s would both write %s; give each "
                               "another file",
                               outputs[k].option, outputs[i].option,
                               outputs[i].path);
    }
    return BM_OK;
}
