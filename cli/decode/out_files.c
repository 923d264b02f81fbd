#define _GNU_SOURCE /* tdestroy, realpath */
#include "cli/decode/out_files.h"

#include "core/file/file.h"
#include "core/log.h"
#include "core/text/words.h"

#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A name that no file can have is the fault of its input. */
static bm_status path_of(const bm_out_files *f, const char *id,
                         char path[PATH_MAX])
{
    int n = (int)strlen(f->folder) + 1;
    const bm_format *format = f->format;
    int length =
        snprintf(path, PATH_MAX, "%s/%s.%s", f->folder, id,
                 format->ending != NULL ? format->ending : format->name);
    int more = length - n - BM_FILE_LONGEST_NAME;

    if (length - BM_FILE_LONGEST_PATH > more)
        more = length - BM_FILE_LONGEST_PATH;
    if (more > 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%.100s..: the id is too long for the name of a file, "
                       "by %s; shorten it",
                       id, bm_count_noun(more, "byte").text);
    for (char *c = path + n; *c != '\0'; c++)
        if (*c == '/')
            *c = '_';
    return BM_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Adds a name to those of this job; fails if it is there. */
static bm_status add_name(bm_out_files *f, const char *path)
{
    char *name = strdup(path);
    char *const *there =
        name != NULL ? (char *const *)tsearch(name, &f->names, compare) : NULL;

    if (there == NULL) {
        free(name);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the name of a file");
    }
    if (*there == name)
        return BM_OK;
    free(name);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s is the file of an earlier input; give inputs with "
                   "different names",
                   path);
}

static bool has_ids(const bm_format *format)
{
    return !format->single && format != &bm_format_txt;
}

/* Warns of the first id that two inputs on stdout have. */
static bm_status warn_of_id(bm_out_files *f, const bm_input *input)
{
    bm_status status = f->warned ? BM_OK : add_name(f, input->id);

    if (status != BM_ERR_FORMAT)
        return status;
    f->warned = true;
    bm_log(
        BM_WARNING,
        "%s: an earlier input has the id %s, too, and bmuf score takes an id "
        "once; give a manifest with ids, or the folder above both",
        input->shown, input->id);
    return BM_OK;
}

bm_status bm_out_files_claim(bm_out_files *f, bm_input *input, bool *skip)
{
    char path[PATH_MAX];
    bm_status status = BM_OK;

    *skip = false;
    if (input->fault != NULL)
        return BM_OK;
    if (f->folder == NULL)
        return has_ids(f->format) ? warn_of_id(f, input) : BM_OK;
    status = path_of(f, input->id, path);
    if (status == BM_OK)
        status = add_name(f, path);
    if (status == BM_ERR_FORMAT) {
        input->fault = strdup(bm_last_message());
        input->status = status;
        return BM_OK;
    }
    BM_TRY(status);
    if (f->force || access(path, F_OK) != 0)
        return BM_OK;
    if (!f->resume)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s exists; add --resume to decode the inputs without a "
                       "file, or --force to replace files, or give another "
                       "--out",
                       path);
    *skip = true;
    f->kept++;
    return BM_OK;
}

/* out <- the path of a file relative to a folder, as "../lines/a.png". False if one
 * of them does not exist or the path is too long. */
static bool relative_path(const char *folder, const char *file,
                          char out[PATH_MAX])
{
    char from[PATH_MAX], to[PATH_MAX];
    size_t shared = 0, n = 0;

    if (realpath(folder, from) == NULL || realpath(file, to) == NULL)
        return false;
    for (size_t i = 0; from[i] == to[i] && from[i] != '\0'; i++)
        shared = from[i] == '/' ? i + 1 : shared;
    if (strncmp(from, to, strlen(from)) == 0 && to[strlen(from)] == '/')
        shared = strlen(from) + 1;
    for (size_t i = shared; i <= strlen(from) && n + 4 < PATH_MAX; i++)
        if ((from[i] == '/' || from[i] == '\0') && i > 1)
            n += (size_t)snprintf(out + n, PATH_MAX - n, "../");
    return snprintf(out + n, PATH_MAX - n, "%s", to + shared) <
           (int)(PATH_MAX - n);
}

bm_status bm_out_files_write(const bm_out_files *f, const bm_decoded *result)
{
    const bm_input *input = result->input;
    bm_decoded from_file = *result;
    char path[PATH_MAX], relative[PATH_MAX];
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(path_of(f, input->id, path));
    if (strcmp(input->shown, input->path) == 0 &&
        relative_path(f->folder, input->path, relative))
        from_file.from_file = relative;
    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    f->format->write(r.stream, &from_file);
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    return status;
}

void bm_out_files_close(bm_out_files *f)
{
    tdestroy(f->names, free);
    f->names = NULL;
}
