#define _GNU_SOURCE /* tdestroy */
#include "cli/decode/out_files.h"

#include "core/file/file.h"
#include "core/words.h"

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
    int length =
        snprintf(path, PATH_MAX, "%s/%s.%s", f->folder, id, f->format->name);
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

bm_status bm_out_files_claim(bm_out_files *f, bm_input *input, bool *skip)
{
    char path[PATH_MAX];
    bm_status status = BM_OK;

    *skip = false;
    if (f->folder == NULL || input->fault != NULL)
        return BM_OK;
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

bm_status bm_out_files_write(const bm_out_files *f, const bm_decoded *result)
{
    char path[PATH_MAX];
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(path_of(f, result->input->id, path));
    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    f->format->write(r.stream, result);
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
