/* info.c - bmuf info: describes a data set, model, checkpoint or run. */
#include "cli/json_output.h"
#include "cli/report/journal_csv.h"
#include "cli/report/runs/describe.h"
#include "cli/verbs.h"
#include "core/file/file_kind.h"
#include "core/file/search_folder.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/inspect/describe.h"
#include "io/model/model_file.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

static const char *const keys[] = {
    "format",   "program",  "net",        "loss",  "units",
    "features", "manifest", "infeasible", "epoch", "evaluated",
    "dev_ler",  "dev_loss", "dev",        "digest"};

static json_t *tensor_json(const bm_st_tensor *t)
{
    json_t *shape = json_array();

    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->dim[i]));
    return json_pack("{s:s, s:o}", "name", t->name, "shape", shape);
}

static void print_tensors_json(const bm_st_file *f)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (bm_st_text(f, keys[i]) != NULL)
            json_object_set_new(o, keys[i],
                                json_string(bm_st_text(f, keys[i])));
    for (size_t i = 0; i < bm_st_count(f); i++)
        json_array_append_new(list, tensor_json(bm_st_at(f, i)));
    json_object_set_new(o, "tensors", list);
    bm_json_print(o, JSON_INDENT(1));
}

/* A text out of a file, as a row of a table. */
static void print_text(const char *indent, int width, const char *key,
                       const char *text)
{
    char *name = bm_printable_copy(key), *shown = bm_printable_copy(text);

    if (name != NULL && shown != NULL)
        printf("%s%*s %s\n", indent, width, name, shown);
    free(name);
    free(shown);
}

static void print_tensors(const bm_st_file *f)
{
    double numbers = 0;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (bm_st_text(f, keys[i]) != NULL)
            print_text("", -12, keys[i], bm_st_text(f, keys[i]));
    for (size_t i = 0; i < bm_st_count(f); i++) {
        const bm_st_tensor *t = bm_st_at(f, i);

        printf("  %-28s [", t->name);
        for (int d = 0; d < t->rank; d++)
            printf("%s%llu", d > 0 ? ", " : "", (unsigned long long)t->dim[d]);
        printf("]\n");
        if (t->dtype == BM_I8 || t->dtype == BM_F16 ||
            (t->dtype == BM_F32 && !bm_ends_with(t->name, ".scale")))
            numbers += (double)t->count;
    }
    printf("%.0f numbers in total\n", numbers);
}

static bm_status describe_tensors(const char *path, bool json)
{
    bool checkpoint = false;
    bm_st_file *f = NULL;

    BM_TRY(bm_model_open(&f, path, &checkpoint));
    if (json)
        print_tensors_json(f);
    else
        print_tensors(f);
    bm_st_free(f);
    return BM_OK;
}

/* --csv, and --event of it. */
static bm_status print_csv(const bm_arguments *a, const struct stat *what)
{
    const char *path = a->nouns[0];

    if (bm_argument(a, "json") != NULL)
        return BM_FAIL(BM_ERR_ARG, "info: give --csv or --json, not both");
    if (!S_ISDIR(what->st_mode) || (!bm_is_run(path) && !bm_has_runs(path)))
        return BM_FAIL(BM_ERR_ARG,
                       "info: --csv prints journals, but %s is neither a run "
                       "nor a directory of runs",
                       path);
    return bm_journal_csv(path, bm_argument(a, "event"), stdout);
}

static bm_status info(const bm_arguments *a)
{
    const char *path = a->nouns[0];
    bool json = bm_argument(a, "json") != NULL;
    const char *kind = NULL;
    struct stat what;

    if (stat(path, &what) != 0)
        return BM_FAIL(BM_ERR_MISSING, "%s: no such file or directory", path);
    BM_TRY(bm_search_folder_refuse(path));
    if (bm_argument(a, "csv") != NULL)
        return print_csv(a, &what);
    if (bm_argument(a, "event") != NULL)
        return BM_FAIL(BM_ERR_ARG, "info: --event requires --csv");
    if (bm_ends_with(path, ".safetensors") ||
        bm_file_kind(path) == bm_kind_safetensors)
        return describe_tensors(path, json);
    if (S_ISDIR(what.st_mode) && bm_is_run(path))
        return bm_describe_run(path, json);
    if (S_ISDIR(what.st_mode) && bm_has_runs(path))
        return bm_describe_runs(path, json);
    kind = bm_text_kind(path);
    if (kind != NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, not a data set, model, checkpoint or run",
                       path, kind);
    return bm_describe_data(path, json, stdout);
}

static const bm_flag flags[] = {
    BM_JSON_FLAG,
    {"csv", NULL, "print the journal of the run or runs as one table", 0,
     false},
    {"event", "KIND", "with --csv: only events of this kind, such as block", 0,
     false},
    {0},
};

const bm_verb bm_verb_info = {
    .name = "info",
    .nouns = "PATH",
    .help = "describe a data set, model, checkpoint, run or several runs",
    .text = "  bmuf info data/train\n"
            "  bmuf info run/model.safetensors --json\n"
            "  bmuf info run/1\n"
            "  bmuf info run\n"
            "  bmuf info run --csv --event block >blocks.csv\n\n"
            "Of a run: its state, the learning curve as a table and a chart, "
            "and where the\ntime went. Of a directory of runs: a line for each "
            "of them.\ndocs/jobs/journal.md describes the table of --csv.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = info,
};
