#include "io/inspect/check_parts.h"

#include "core/child.h"
#include "core/file/file.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/shard/shard_list.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
#define X(name, text) text,
    BM_CHECK_KINDS(X)
#undef X
};

/* The hash of a sequence's name. */
typedef struct named {
    uint64_t hash;
    uint32_t shard, sequence;
} named;

/* Of a shard. */
typedef struct shard_texts {
    uint64_t labels;
    size_t missing; /* sequences without a text */
} shard_texts;

/* In the parent, for all shards. */
typedef struct tally {
    FILE *out;
    json_t *list; /* of problems, for JSON; NULL: text */
    int stride;
    size_t limit;             /* lines per kind */
    const char *path, *first; /* this shard; the first readable one */
    size_t count[BM_CHECK_KINDS_N];
    uint64_t sequences, frames, labels;
    bm_shard_member *members;
    shard_texts *texts; /* of each shard */
    bool complete;      /* this shard was read to its end */
    named *names;
    size_t n_names, room_names;
    uint32_t shard, sequence;         /* of the next name in the pipe */
    bm_check_watch *watch;            /* NULL: none */
    uint64_t bytes, of_shard, before; /* all; this shard; those before it */
} tally;

static void report(tally *t, bm_check_kind k, const char *text)
{
    char safe[2048];

    if (t->count[k]++ >= t->limit)
        return;
    bm_printable(text, safe, sizeof safe);
    if (t->list != NULL) {
        json_array_append_new(
            t->list, json_pack("{s:s, s:s}", "kind", kinds[k], "text", safe));
        return;
    }
    bm_log_make_room();
    fprintf(t->out, "%s\n", safe);
    bm_log_end_room();
}

/* Without memory the name is not compared. */
static void keep_name(tally *t, uint64_t hash)
{
    if (bm_grow(&t->names, t->n_names, &t->room_names, sizeof *t->names) ==
        BM_OK)
        t->names[t->n_names++] = (named){hash, t->shard, t->sequence++};
}

/* "sequences missing frames labels index count first before hash" */
static void receive_end(tally *t, const char *text)
{
    bm_shard_member *m = &t->members[t->shard];
    shard_texts *texts = &t->texts[t->shard];
    char *end = NULL;

    m->readable = true;
    m->sequences = strtoull(text, &end, 10);
    t->sequences += m->sequences;
    texts->missing = strtoull(end, &end, 10);
    t->frames += strtoull(end, &end, 10);
    texts->labels = strtoull(end, &end, 10);
    t->labels += texts->labels;
    m->place.index = strtoll(end, &end, 10);
    m->place.count = strtoll(end, &end, 10);
    m->place.first = strtoll(end, &end, 10);
    m->place.before = strtoull(end, &end, 10);
    m->hash = strtoull(end, &end, 10);
    t->complete = true;
}

static void watch(const tally *t, double share)
{
    if (t->watch != NULL)
        t->watch(t->before + (uint64_t)(share * (double)t->of_shard), t->bytes);
}

static void receive(void *self, const char *line)
{
    tally *t = self;

    if (line[0] == '%') { /* units done, of all */
        char *end = NULL;
        double done = strtod(line + 1, &end);

        watch(t, done / fmax(strtod(end, NULL), done));
    } else if (line[0] == '#') {
        keep_name(t, strtoull(line + 1, NULL, 16));
    } else if (line[0] == '=') {
        receive_end(t, line + 1);
    } else if (line[0] >= 'a' && line[0] < 'a' + BM_CHECK_KINDS_N) {
        report(t, (bm_check_kind)(line[0] - 'a'), line + 1);
    }
}

static uint64_t bytes_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Enough for the largest possible unit and the loaded libraries. */
static uint64_t memory_for(const char *path)
{
#ifdef __SANITIZE_ADDRESS__
    (void)path; /* the sanitizer reserves terabytes of addresses */
    return 0;
#else
    return ((uint64_t)1 << 34) + 16 * bytes_of(path);
#endif
}

static void inspect(void *self, FILE *to)
{
    const tally *t = self;

    bm_check_shard(t->path, t->first, t->stride, to);
}

static bm_status check_shard(tally *t)
{
    bm_child child = {.work = inspect,
                      .receive = receive,
                      .self = t,
                      .memory = memory_for(t->path),
                      .seconds = 600};
    size_t before = t->count[BM_CHECK_UNREADABLE];
    char line[1024];
    int ended = 0;

    t->complete = false;
    fflush(t->out);
    BM_TRY(bm_child_run(&child, &ended));
    if (t->complete && t->first == NULL)
        t->first = t->path;
    if ((ended == 0 && t->complete) || t->count[BM_CHECK_UNREADABLE] > before)
        return BM_OK;
    snprintf(line, sizeof line,
             "%s: unreadable, HDF5 crashed (signal %d); pack it again", t->path,
             ended);
    report(t, BM_CHECK_UNREADABLE, line);
    return BM_OK;
}

/* Temporary files of a bmuf pack that was killed. */
static void check_unfinished(tally *t, const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *entry = NULL;
    char line[1024];

    while (d != NULL && (entry = readdir(d)) != NULL) {
        if (!bm_file_is_temporary(entry->d_name, "", BM_SHARD_SUFFIX))
            continue;
        snprintf(line, sizeof line,
                 "%s/%s: unfinished file of a bmuf pack that was stopped; pack "
                 "again",
                 directory, entry->d_name);
        report(t, BM_CHECK_UNFINISHED, line);
    }
    if (d != NULL)
        closedir(d);
}

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void check_names(tally *t, char **paths)
{
    char line[1024];

    if (t->n_names > 0)
        qsort(t->names, t->n_names, sizeof *t->names, by_name);
    for (size_t i = 1; i < t->n_names; i++) {
        const named *x = &t->names[i - 1], *y = &t->names[i];

        if (x->hash != y->hash)
            continue;
        snprintf(line, sizeof line,
                 "%s: sequence number %u has the name of number %u of %s",
                 paths[y->shard], (unsigned)y->sequence, (unsigned)x->sequence,
                 paths[x->shard]);
        report(t, BM_CHECK_DUPLICATE, line);
    }
}

/* Shards that have no text at all, where others have. */
static void check_texts(tally *t, char **paths, size_t n)
{
    char line[1024];

    for (size_t i = 0; i < n && t->labels > 0; i++) {
        const shard_texts *texts = &t->texts[i];

        if (texts->labels > 0 || texts->missing == 0)
            continue;
        snprintf(line, sizeof line,
                 "%s: %s without a text, but other shards have texts: training "
                 "takes them for silence; pack the set again",
                 paths[i],
                 bm_count_noun((long long)texts->missing, "sequence").text);
        report(t, BM_CHECK_EMPTY, line);
    }
}

static void report_missing(void *self, const char *text)
{
    report(self, BM_CHECK_MISSING, text);
}

/* Not for a shard that is checked by itself. */
static void check_complete(tally *t, const char *directory, char **paths,
                           size_t n)
{
    bool unknown = false;

    if (strcmp(directory, paths[0]) == 0)
        return;
    bm_shard_complete(t->members, n, report_missing, t, &unknown);
    if (unknown && t->count[BM_CHECK_UNREADABLE] == 0 && t->list == NULL)
        fprintf(t->out,
                "note: %s was packed before shards had their number: whether "
                "the last ones are missing is not known\n",
                directory);
}

static size_t summarize(const tally *t, const char *directory, size_t shards)
{
    size_t problems = 0;

    for (int k = 0; k < BM_CHECK_KINDS_N; k++) {
        problems += t->count[k];
        if (t->count[k] > t->limit)
            fprintf(t->out, ".. and %zu more %s\n", t->count[k] - t->limit,
                    kinds[k]);
    }
    for (int k = 0; k < BM_CHECK_KINDS_N; k++)
        if (t->count[k] > 0)
            fprintf(t->out, "%s: %zu\n", kinds[k], t->count[k]);
    fprintf(t->out, "%s: %s, %s, %s, %s: ", directory,
            bm_count_noun((long long)shards, "shard").text,
            bm_count_noun((long long)t->sequences, "sequence").text,
            bm_count_noun((long long)t->frames, "frame").text,
            bm_count_noun((long long)t->labels, "label").text);
    if (problems == 0)
        fprintf(t->out, "no problems%s\n",
                t->sequences > 0 && t->labels == 0
                    ? "; without labels eval gives no error rates, "
                      "and train refuses it"
                    : "");
    else
        fprintf(t->out, "%s\n",
                bm_count_noun((long long)problems, "problem").text);
    return problems;
}

static size_t print_json(const tally *t, const char *directory, size_t shards)
{
    json_t *of_kinds = json_object(), *o = NULL;
    char path[PATH_MAX];
    size_t problems = 0;

    for (int k = 0; k < BM_CHECK_KINDS_N; k++) {
        problems += t->count[k];
        if (t->count[k] > 0)
            json_object_set_new(of_kinds, kinds[k],
                                json_integer((json_int_t)t->count[k]));
    }
    o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:O}", "path",
                  bm_printable(directory, path, sizeof path), "shards",
                  (json_int_t)shards, "sequences", (json_int_t)t->sequences,
                  "frames", (json_int_t)t->frames, "labels",
                  (json_int_t)t->labels, "problems", (json_int_t)problems,
                  "kinds", of_kinds, "list", t->list);
    json_dumpf(o, t->out, JSON_INDENT(1));
    fputc('\n', t->out);
    json_decref(o);
    return problems;
}

bm_status bm_check_directory(const char *directory, int stride, size_t limit,
                             FILE *out, bool json, bm_check_watch *watch_bytes,
                             size_t *problems)
{
    tally t = {.out = out,
               .list = json ? json_array() : NULL,
               .stride = stride,
               .limit = limit > 0 ? limit : SIZE_MAX,
               .watch = watch_bytes};
    char **paths = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    BM_ASSERT(stride >= 1);
    BM_TRY_DONE(bm_shard_list(directory, &paths, &n));
    t.members = calloc(n, sizeof *t.members);
    t.texts = calloc(n, sizeof *t.texts);
    if (t.members == NULL || t.texts == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu shards", n);
    check_unfinished(&t, directory);
    for (size_t i = 0; i < n; i++)
        t.bytes += bytes_of(paths[i]);
    for (size_t i = 0; i < n; i++) {
        t.members[i].path = paths[i];
        t.path = paths[i];
        t.of_shard = bytes_of(paths[i]);
        t.shard = (uint32_t)i;
        t.sequence = 0;
        BM_TRY_DONE(check_shard(&t));
        t.before += t.of_shard;
        watch(&t, 0);
    }
    check_names(&t, paths);
    check_texts(&t, paths, n);
    check_complete(&t, directory, paths, n);
    bm_log_make_room();
    *problems =
        json ? print_json(&t, directory, n) : summarize(&t, directory, n);
    bm_log_end_room();
done:
    json_decref(t.list);
    free(t.names);
    free(t.members);
    free(t.texts);
    bm_shard_list_free(paths, n);
    return status;
}
