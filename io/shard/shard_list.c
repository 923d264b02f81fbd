#include "io/shard/shard_list.h"

#include "core/words.h"
#include "io/shard/shard_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static bool is_shard(const char *name)
{
    return name[0] != '.' && bm_ends_with(name, BM_SHARD_SUFFIX);
}

/* Takes over `path`; NULL means that allocating it failed. */
static bm_status add(char ***paths, size_t *n, char *path)
{
    char **grown = realloc(*paths, (*n + 1) * sizeof *grown);

    if (grown != NULL)
        *paths = grown;
    if (grown == NULL || path == NULL) {
        free(path);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu paths", *n + 1);
    }
    grown[(*n)++] = path;
    return BM_OK;
}

static char *join(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);

    if (path != NULL)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

bm_status bm_shard_list(const char *path, char ***paths, size_t *n)
{
    const struct dirent *entry = NULL;
    struct stat info;
    char **found = NULL;
    size_t count = 0;
    DIR *d = NULL;
    bm_status status = BM_OK;

    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        BM_TRY_DONE(add(&found, &count, strdup(path)));
    } else {
        d = opendir(path);
        if (d == NULL)
            BM_FAIL_DONE(BM_ERR_MISSING, "data directory %s: %s", path,
                         strerror(errno));
        while ((entry = readdir(d)) != NULL)
            if (is_shard(entry->d_name))
                BM_TRY_DONE(add(&found, &count, join(path, entry->d_name)));
    }
    if (count == 0)
        BM_FAIL_DONE(BM_ERR_MISSING,
                     "%s: no *" BM_SHARD_SUFFIX
                     " files; make them with bmuf pack",
                     path);
    qsort(found, count, sizeof *found, by_name);
    *paths = found;
    *n = count;
    found = NULL;
done:
    if (d != NULL)
        closedir(d);
    bm_shard_list_free(found, count);
    return status;
}

void bm_shard_list_free(char **paths, size_t n)
{
    for (size_t i = 0; paths != NULL && i < n; i++)
        free(paths[i]);
    free(paths);
}

static const char *task(const bm_shard *s)
{
    return s->per_frame ? "frames" : "sequences";
}

bool bm_shard_compare(const bm_shard *a, const bm_shard *b, int property,
                      char *text, size_t room)
{
    bool differ[BM_SHARD_PROPERTIES] = {a->t.features != b->t.features,
                                        !bm_vocab_equal(a->vocab, b->vocab),
                                        a->per_frame != b->per_frame};

    if (!differ[property])
        return false;
    if (property == 0)
        snprintf(text, room, "%s has %zu features per frame, %s has %zu",
                 b->path, b->t.features, a->path, a->t.features);
    else if (property == 2)
        snprintf(text, room, "%s has labels for %s, %s for %s", b->path,
                 task(b), a->path, task(a));
    else if (a->t.classes != b->t.classes)
        snprintf(text, room, "%s has %zu classes, %s has %zu", b->path,
                 b->t.classes, a->path, a->t.classes);
    else
        snprintf(text, room,
                 "%s and %s have different vocabularies of %zu classes; pack "
                 "both with the same --vocab",
                 b->path, a->path, b->t.classes);
    return true;
}
