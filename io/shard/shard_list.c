#include "io/shard/shard_list.h"

#include "core/text/words.h"
#include "io/features/feature_text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Does the path begin with that of a folder and a blank? */
static bool names_several(const char *path)
{
    char *first = strndup(path, strcspn(path, " \t,"));
    struct stat info;
    bool several = first != NULL && strcmp(first, path) != 0 &&
                   stat(first, &info) == 0 && S_ISDIR(info.st_mode);

    free(first);
    return several;
}

/* A path that is not absolute is one of the current directory. */
static bm_status no_directory(const char *path, int error)
{
    char here[PATH_MAX];

    if (error == ENOENT && names_several(path))
        return BM_FAIL(BM_ERR_MISSING,
                       "data directory %s: this is one folder, not several. To "
                       "take sets with equal vocabularies together, link the "
                       "shards of all, under names that differ, into one "
                       "folder (docs/data/shards.md)",
                       path);
    if (error != ENOENT || path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return BM_FAIL(BM_ERR_MISSING, "data directory %s: %s", path,
                       strerror(error));
    return BM_FAIL(BM_ERR_MISSING,
                   "data directory %s: %s below %s, where bmuf was started",
                   path, strerror(error), here);
}

/* bmuf_speech writes speech.json first, and shards into folders beside it. */
static bm_status no_shards(const char *path)
{
    char *about = join(path, "../speech.json");
    bool speech = about != NULL && access(about, F_OK) == 0;

    free(about);
    return BM_FAIL(BM_ERR_MISSING, "%s: no *" BM_SHARD_SUFFIX " files; %s",
                   path,
                   speech ? "run bmuf_speech again with the options that began "
                            "this corpus"
                          : "make them with bmuf pack");
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
        if (d == NULL) {
            status = no_directory(path, errno);
            goto done;
        }
        while ((entry = readdir(d)) != NULL)
            if (is_shard(entry->d_name))
                BM_TRY_DONE(add(&found, &count, join(path, entry->d_name)));
    }
    if (count == 0) {
        status = no_shards(path);
        goto done;
    }
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

/* Whether features were made with other settings; `list` <- those of b, in one
 * line. */
static bool other_features(const bm_shard *a, const bm_shard *b, char *list,
                           size_t room)
{
    bool raw = false;
    size_t n = 0;

    if (strcmp(a->features_text, b->features_text) == 0)
        return false;
    n = bm_features_differ(a->features_text, b->features_text, list, room,
                           &raw);
    for (char *line = list; (line = strchr(line, '\n')) != NULL;) {
        *line = line == list ? ':' : ';';
        memmove(line + 1, line + 2, strlen(line + 1)); /* one of two blanks */
    }
    return n > 0 || raw;
}

bool bm_shard_compare(const bm_shard *a, const bm_shard *b, int property,
                      char *text, size_t room)
{
    char list[600] = "";
    bool differ[BM_SHARD_PROPERTIES] = {
        a->t.features != b->t.features, !bm_vocab_equal(a->vocab, b->vocab),
        a->per_frame != b->per_frame,
        property == 3 && other_features(a, b, list, sizeof list)};

    if (!differ[property])
        return false;
    if (property == 0)
        snprintf(text, room, "%s has %zu features per frame, %s has %zu",
                 b->path, b->t.features, a->path, a->t.features);
    else if (property == 3)
        snprintf(text, room,
                 "%s: features were made with other settings than those of "
                 "%s; pack again with the same%s",
                 b->path, a->path, list);
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

/* ---- whether all are there ---------------------------------------------- */

enum { MOST_LISTED = 20 };

/* Where the reports go, and how far the shards of one name have been checked. */
typedef struct progress {
    void (*report)(void *self, const char *text);
    void *self;
    int64_t next;     /* index of the next shard */
    int64_t count;    /* of the last shard */
    uint64_t first;   /* sequences before it */
    uint64_t before;  /* chain of those before it */
    bool known;       /* first and before are */
    size_t n_missing; /* listed so far */
} progress;

/* Length of a path without "00003.bmuf.h5". */
static size_t stem(const char *path)
{
    size_t n = strlen(path);

    n -= bm_ends_with(path, BM_SHARD_SUFFIX) ? strlen(BM_SHARD_SUFFIX) : 0;
    while (n > 0 && isdigit((unsigned char)path[n - 1]))
        n--;
    return n;
}

static bool same_set(const char *a, const char *b)
{
    return stem(a) == stem(b) && strncmp(a, b, stem(a)) == 0;
}

/* Reports the shards from p->next to index - 1, if index is larger. */
static void report_missing(progress *p, const char *path, int64_t index)
{
    char line[1024];

    p->known = p->known && p->next == index;
    for (; p->next < index && p->n_missing < MOST_LISTED; p->next++) {
        snprintf(line, sizeof line,
                 "%.*s%05" PRId64 BM_SHARD_SUFFIX
                 " is missing; copy it, or pack again",
                 (int)stem(path), path, p->next);
        p->report(p->self, line);
        p->n_missing++;
    }
    if (p->next >= index)
        return;
    snprintf(line, sizeof line, "%" PRId64 " more shards before %s are missing",
             index - p->next, path);
    p->report(p->self, line);
}

static void check_member(progress *p, const bm_shard_member *m)
{
    const char *digits = m->path + stem(m->path);
    int64_t index = isdigit((unsigned char)*digits)
                        ? (int64_t)strtoll(digits, NULL, 10)
                        : p->next;
    bool counted = m->readable && m->place.count >= 0;
    char line[1024];

    if (m->readable && m->place.index >= 0)
        index = m->place.index;
    else if (index > BM_SHARD_MOST) /* a number of another kind */
        index = p->next;
    report_missing(p, m->path, index);
    if (index < p->next || (m->readable && p->count > 0) ||
        (p->known && counted &&
         ((uint64_t)m->place.first != p->first ||
          m->place.before != p->before))) {
        snprintf(line, sizeof line,
                 "%s is of another bmuf pack than the shards before it; pack "
                 "again",
                 m->path);
        p->report(p->self, line);
        p->known = false;
    }
    p->known = p->known && counted;
    p->next = index < p->next ? p->next + 1 : index + 1; /* in its place */
    p->count = m->readable ? m->place.count : -1;
    p->first += m->sequences;
    p->before = bm_shard_chain(p->before, m->hash);
}

void bm_shard_complete(const bm_shard_member *members, size_t n,
                       void (*report)(void *self, const char *text), void *self,
                       bool *unknown)
{
    progress p = {.report = report, .self = self, .known = true};
    char line[1024];

    *unknown = false;
    for (size_t i = 0; i < n; i++) {
        const char *path = members[i].path;
        bool last = i + 1 == n || !same_set(path, members[i + 1].path);

        check_member(&p, &members[i]);
        *unknown = *unknown || p.count < 0;
        if (last && p.count == 0) {
            snprintf(line, sizeof line,
                     "%.*s%05" PRId64 BM_SHARD_SUFFIX
                     ", or the last shards from there on, are missing; copy "
                     "them, or pack again",
                     (int)stem(path), path, p.next);
            report(self, line);
        }
        if (last)
            p = (progress){.report = report, .self = self, .known = true};
    }
}
