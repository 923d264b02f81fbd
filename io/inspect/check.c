#include "io/inspect/check.h"

#include "compute/batch.h"
#include "core/file.h"
#include "core/log.h"
#include "core/printable.h"
#include "core/words.h"
#include "io/inspect/child.h"
#include "io/shard/h5.h"
#include "io/shard/shard_list.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of problems and their plural. In the pipe, a kind is one letter. */
#define KINDS(X)                                                               \
    X(UNREADABLE, "shards that cannot be read")                                \
    X(UNFINISHED, "unfinished files")                                          \
    X(MISSING, "shards that are missing or of another bmuf pack")              \
    X(DIFFERENT, "shards that differ from the first")                          \
    X(DUPLICATE, "sequences with the name of another sequence")                \
    X(DAMAGED, "damaged units or tables")                                      \
    X(EMPTY, "empty sequences")                                                \
    X(NOT_FINITE, "sequences with NaN or infinite features")                   \
    X(LABEL, "sequences with labels out of range")                             \
    X(INFEASIBLE, "sequences too short for CTC")

typedef enum kind {
#define X(name, text) name,
    KINDS(X)
#undef X
        N_KINDS
} kind;

static const char *const kinds[] = {
#define X(name, text) text,
    KINDS(X)
#undef X
};

/* In the child: a shard, and the pipe to the parent. */
typedef struct inspection {
    bm_shard *s;
    int stride;
    FILE *out;
    bm_sequences x;
    bm_waveform wave;
    int32_t *min_frames; /* NULL: cannot be read */
    bool has_names;      /* tags can be read */
    bool labelled;       /* any sequence is */
} inspection;

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
    size_t count[N_KINDS];
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

static void report(tally *t, kind k, const char *text)
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

/* Sends a problem to the parent: the kind as a letter, then the text, without the
 * advice to run this check. */
static void send_problem(const inspection *i, kind k, const char *text)
{
    size_t n = strlen(text);

    if (bm_ends_with(text, BM_RUN_CHECK))
        n -= strlen(BM_RUN_CHECK);
    fprintf(i->out, "%c", 'a' + (int)k);
    for (; n > 0; text++, n--)
        fputc(*text == '\n' ? ' ' : *text, i->out);
    fputc('\n', i->out);
}

/* The same for a sequence, by its name. */
static void send_for_sequence(inspection *i, kind k, size_t sequence,
                              const char *text)
{
    char line[1024];

    if (i->has_names)
        snprintf(line, sizeof line, "%s: sequence %s: %s", i->s->path,
                 bm_shard_tag_or(i->s, sequence), text);
    else
        snprintf(line, sizeof line, "%s: sequence number %zu: %s", i->s->path,
                 sequence, text);
    send_problem(i, k, line);
}

/* The table must have the running sums of a column of the lengths. */
static void inspect_offsets(const inspection *i, const char *name, int column)
{
    const bm_shard *s = i->s;
    uint64_t n = s->t.n + 1, sum = 0, *sums = NULL;
    char line[1024];
    void *p = NULL;
    bool good = true;

    if (bm_h5_table(&s->file, name, H5T_STD_U64LE, 0, &n, &p) != BM_OK) {
        send_problem(i, DAMAGED, bm_last_message());
        return;
    }
    sums = p;
    for (size_t k = 0; k < s->t.n; k++) {
        good = good && sums[k] == sum;
        sum += (uint64_t)s->t.lengths[2 * k + (size_t)column];
    }
    if (!good || sums[s->t.n] != sum) {
        snprintf(line, sizeof line, "%s: /%s disagrees with /seqLengths",
                 s->path, name);
        send_problem(i, DAMAGED, line);
    }
    free(sums);
}

/* Checks tables that only other programs read. */
static void inspect_tables(inspection *i)
{
    uint64_t n = i->s->t.n;
    void *p = NULL;

    bm_h5_enter();
    if (bm_shard_file_open(i->s) != BM_OK) {
        send_problem(i, UNREADABLE, bm_last_message());
    } else {
        inspect_offsets(i, "bmuf/frame_offset", 0);
        inspect_offsets(i, "bmuf/label_offset", 1);
        if (bm_h5_table(&i->s->file, "bmuf/min_frames", H5T_STD_I32LE, 0, &n,
                        &p) != BM_OK)
            send_problem(i, DAMAGED, bm_last_message());
    }
    bm_h5_leave();
    i->min_frames = p;
}

static void inspect_features(inspection *i, size_t sequence, const float *x,
                             size_t frames)
{
    size_t columns = i->x.features, n = frames * columns, k = 0, first = 0;
    size_t bad = 0;
    char text[128];

    for (k = 0; k < n; k++)
        if (!isfinite(x[k]) && bad++ == 0)
            first = k;
    if (bad == 0)
        return;
    snprintf(text, sizeof text,
             "%zu values are NaN or infinite, first in frame %zu, column %zu",
             bad, first / columns, first % columns);
    send_for_sequence(i, NOT_FINITE, sequence, text);
}

/* repeats: -1 if unknown. */
static void inspect_length(inspection *i, size_t sequence, size_t n,
                           int64_t repeats, size_t frames)
{
    size_t left = (frames + (size_t)i->stride - 1) / (size_t)i->stride;
    size_t least = n + (repeats > 0 ? (size_t)repeats : 0);
    char text[512], with[128] = "";

    if (frames == 0)
        send_for_sequence(i, EMPTY, sequence, "has no frames");
    else if (i->labelled && !bm_shard_has_reference(i->s, sequence))
        send_for_sequence(i, EMPTY, sequence,
                          "has no text, but others have: training takes it "
                          "for silence; pack the set again");
    if (i->s->per_frame || left >= least)
        return;
    if (repeats >= 0)
        snprintf(with, sizeof with, " with %s",
                 bm_count_noun(repeats, "repeat").text);
    snprintf(text, sizeof text,
             "%s%s need %s, but %zu / %d = %zu are left; lower "
             "the stride or remove the sequence",
             bm_count_noun((long long)n, "label").text, with,
             bm_count_noun((long long)least, "frame").text, frames, i->stride,
             left);
    send_for_sequence(i, INFEASIBLE, sequence, text);
}

/* Returns the number of labels that equal the one before. */
static int64_t inspect_labels(inspection *i, size_t sequence,
                              const int32_t *labels, size_t n)
{
    int32_t low = bm_shard_lowest_label(i->s);
    size_t repeats = i->s->per_frame ? 0 : bm_ctc_repeats(labels, n), bad = 0;
    char text[128];

    for (size_t k = 0; k < n; k++) {
        if (labels[k] >= low && (size_t)labels[k] < i->s->t.classes)
            continue;
        snprintf(text, sizeof text, "label %d is outside [%d, %zu]", labels[k],
                 low, i->s->t.classes - 1);
        if (bad++ == 0)
            send_for_sequence(i, LABEL, sequence, text);
    }
    if (i->min_frames != NULL &&
        i->min_frames[sequence] != (int64_t)(n + repeats))
        send_for_sequence(i, DAMAGED, sequence,
                          "/bmuf/min_frames disagrees with its labels");
    return (int64_t)repeats;
}

static bool succeeded(const inspection *i, bm_status status)
{
    if (status != BM_OK)
        send_problem(i, DAMAGED, bm_last_message());
    return status == BM_OK;
}

/* Damaged features do not keep the labels from being checked, nor the
 * reverse. */
static void inspect_unit(inspection *i, size_t unit)
{
    bm_unit_size u = bm_shard_unit(i->s, unit);
    const int32_t *length = bm_shard_lengths(i->s) + 2 * u.first;
    bool features = succeeded(i, bm_shard_load_features(i->s, unit, &i->x));
    bool labels = succeeded(i, bm_shard_load_labels(i->s, unit, &i->x));
    size_t frame = 0, label = 0;

    for (size_t k = 0; k < u.sequences; k++) {
        size_t sequence = u.first + k, n = (size_t)length[2 * k + 1];
        size_t frames = (size_t)length[2 * k];
        int64_t repeats = -1;

        if (features)
            inspect_features(i, sequence, i->x.x + frame * i->x.features,
                             frames);
        if (labels)
            repeats = inspect_labels(i, sequence, i->x.targets + label, n);
        inspect_length(i, sequence, n, repeats, frames);
        if (bm_shard_sample_rate(i->s) > 0)
            (void)succeeded(i,
                            bm_shard_read_waveform(i->s, sequence, &i->wave));
        frame += frames;
        label += n;
    }
}

static void inspect_first(const inspection *i, const char *path)
{
    char line[1024];
    bm_shard *first = NULL;

    if (path == NULL || bm_shard_open(&first, path) != BM_OK)
        return;
    for (int k = 0; k < BM_SHARD_PROPERTIES; k++)
        if (bm_shard_compare(first, i->s, k, line, sizeof line))
            send_problem(i, DIFFERENT, line);
    if (strcmp(first->features_text, i->s->features_text) != 0) {
        snprintf(line, sizeof line,
                 "%s: features were made with other settings than those of %s",
                 i->s->path, path);
        send_problem(i, DIFFERENT, line);
    }
    bm_shard_close(first);
}

/* Sends the hashes of all names. */
static void send_names(const inspection *i)
{
    const char *tag = NULL;

    for (size_t k = 0; i->has_names && k < i->s->t.n; k++)
        if (bm_shard_tag(i->s, k, &tag) == BM_OK)
            fprintf(i->out, "#%016" PRIx64 "\n",
                    (uint64_t)XXH3_64bits(tag, strlen(tag)));
}

/* Runs in the child: checks a shard, then sends its names and its size. */
static void inspect(void *self, FILE *to)
{
    const tally *t = self;
    inspection i = {.stride = t->stride, .out = to};
    const char *tag = NULL;
    uint64_t frames = 0, labels = 0;
    size_t missing = 0;

    if (bm_shard_open(&i.s, t->path) != BM_OK) {
        send_problem(&i, UNREADABLE, bm_last_message());
        return;
    }
    inspect_first(&i, t->first);
    i.has_names = i.s->t.n == 0 || succeeded(&i, bm_shard_tag(i.s, 0, &tag));
    inspect_tables(&i);
    for (size_t k = 0; k < bm_shard_units(i.s); k++)
        labels += bm_shard_unit(i.s, k).labels;
    i.labelled = labels > 0;
    for (size_t k = 0; k < bm_shard_units(i.s); k++) {
        inspect_unit(&i, k);
        frames += bm_shard_unit(i.s, k).frames;
        fprintf(to, "%%%zu %zu\n", k + 1, bm_shard_units(i.s));
        fflush(to);
    }
    for (size_t k = 0; k < i.s->t.n; k++)
        missing += !bm_shard_has_reference(i.s, k);
    send_names(&i);
    fprintf(to,
            "=%zu %zu %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64
            " %" PRIu64 " %" PRIu64 "\n",
            i.s->t.n, missing, frames, labels, i.s->place.index,
            i.s->place.count, i.s->place.first, i.s->place.before,
            bm_shard_hash(i.s));
    free(i.min_frames);
    bm_sequences_free(&i.x);
    bm_waveform_free(&i.wave);
    bm_shard_close(i.s);
}

/* Without memory the name is not compared. */
static void keep_name(tally *t, uint64_t hash)
{
    if (t->n_names == t->room_names) {
        size_t room = 2 * t->room_names + 1024;
        named *grown = realloc(t->names, room * sizeof *grown);

        if (grown == NULL)
            return;
        t->names = grown;
        t->room_names = room;
    }
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
    } else if (line[0] >= 'a' && line[0] < 'a' + N_KINDS) {
        report(t, (kind)(line[0] - 'a'), line + 1);
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

static bm_status check_shard(tally *t)
{
    bm_child child = {.work = inspect,
                      .receive = receive,
                      .self = t,
                      .memory = memory_for(t->path),
                      .seconds = 600};
    size_t before = t->count[UNREADABLE];
    char line[1024];
    int ended = 0;

    t->complete = false;
    fflush(t->out);
    BM_TRY(bm_child_run(&child, &ended));
    if (t->complete && t->first == NULL)
        t->first = t->path;
    if ((ended == 0 && t->complete) || t->count[UNREADABLE] > before)
        return BM_OK;
    snprintf(line, sizeof line,
             "%s: unreadable, HDF5 crashed (signal %d); pack it again", t->path,
             ended);
    report(t, UNREADABLE, line);
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
        report(t, UNFINISHED, line);
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
        report(t, DUPLICATE, line);
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
        report(t, EMPTY, line);
    }
}

static void report_missing(void *self, const char *text)
{
    report(self, MISSING, text);
}

/* Not for a shard that is checked by itself. */
static void check_complete(tally *t, const char *directory, char **paths,
                           size_t n)
{
    bool unknown = false;

    if (strcmp(directory, paths[0]) == 0)
        return;
    bm_shard_complete(t->members, n, report_missing, t, &unknown);
    if (unknown && t->count[UNREADABLE] == 0 && t->list == NULL)
        fprintf(t->out,
                "note: %s was packed before shards had their number: whether "
                "the last ones are missing is not known\n",
                directory);
}

static size_t summarize(const tally *t, const char *directory, size_t shards)
{
    size_t problems = 0;

    for (int k = 0; k < N_KINDS; k++) {
        problems += t->count[k];
        if (t->count[k] > t->limit)
            fprintf(t->out, ".. and %zu more %s\n", t->count[k] - t->limit,
                    kinds[k]);
    }
    for (int k = 0; k < N_KINDS; k++)
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

    for (int k = 0; k < N_KINDS; k++) {
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
