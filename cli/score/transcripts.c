/* transcripts.c - lines are cut in place, so that texts point into the file. */
#include "cli/score/transcripts.h"

#include "core/file.h"
#include "core/file_kind.h"
#include "core/words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LARGEST_FILE = 1 << 30, NAMED = 10 };

static const char blanks[] = " \t\r\n\v\f";

/* ---- lists of utterances ------------------------------------------------- */

static bm_status add(bm_transcripts *t, const bm_utterance *u)
{
    if (t->n == t->room) {
        size_t room = t->room > 0 ? 2 * t->room : 256;
        bm_utterance *grown = realloc(t->of, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu lines of %s", room,
                           t->path);
        t->of = grown;
        t->room = room;
    }
    t->of[t->n++] = *u;
    return BM_OK;
}

/* Takes a text over, which is freed with the list, also after a failure. */
static bm_status own(bm_transcripts *t, char *text)
{
    if (text != NULL && t->n_owned == t->room_owned) {
        size_t room = t->room_owned > 0 ? 2 * t->room_owned : 64;
        char **grown = realloc((void *)t->owned, room * sizeof *grown);

        if (grown == NULL) {
            free(text);
            text = NULL;
        } else {
            t->owned = grown;
            t->room_owned = room;
        }
    }
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the texts of %s", t->path);
    t->owned[t->n_owned++] = text;
    return BM_OK;
}

void bm_transcripts_free(bm_transcripts *t)
{
    for (size_t i = 0; i < t->n_owned; i++)
        free(t->owned[i]);
    free((void *)t->owned);
    free(t->of);
    free(t->bytes);
    *t = (bm_transcripts){0};
}

/* ---- lines --------------------------------------------------------------- */

/* The next word of a line, cut off; NULL: there is none. */
static char *take(char **at)
{
    char *word = *at + strspn(*at, blanks);

    *at = word + strcspn(word, blanks);
    if (*word == '\0')
        return NULL;
    if (**at != '\0')
        *(*at)++ = '\0';
    return word;
}

static bool take_number(char **at, double *out)
{
    const char *word = take(at);
    char *end = NULL;

    if (word == NULL)
        return false;
    *out = strtod(word, &end);
    return end != word && *end == '\0' && isfinite(*out) && *out >= 0;
}

static void trim(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && strchr(blanks, text[n - 1]) != NULL)
        text[--n] = '\0';
}

/* ---- ids of trn ---------------------------------------------------------- */

/* The parenthesis that the one at text[n - 1] closes; NULL: there is none. */
static char *opening(char *text, size_t n)
{
    size_t depth = 0;

    while (n-- > 0) {
        depth += text[n] == ')';
        if (text[n] == '(' && --depth == 0)
            return text + n;
    }
    return NULL;
}

/* Does every parenthesis have its other one? */
static bool is_paired(const char *text)
{
    size_t depth = 0;

    for (; *text != '\0'; text++) {
        if (*text == ')' && depth-- == 0)
            return false;
        depth += *text == '(';
    }
    return depth == 0;
}

void bm_trn_id_print(FILE *out, const char *id)
{
    bool paired = is_paired(id);

    for (; *id != '\0'; id++) {
        unsigned char c = (unsigned char)*id;
        bool odd = c <= ' ' || c == 0x7f || (!paired && strchr("()", c));

        fputc(odd ? '_' : c, out);
    }
}

/* ---- forms --------------------------------------------------------------- */

/* A line to an utterance; false: it is not of this form. */
typedef bool line_reader(char *line, bm_utterance *u);

static bool read_trn(char *line, bm_utterance *u)
{
    size_t n = strlen(line);
    char *open = n > 0 && line[n - 1] == ')' ? opening(line, n) : NULL;

    if (open == NULL)
        return false;
    line[n - 1] = '\0';
    *open++ = '\0';
    open += strspn(open, blanks);
    trim(open);
    u->id = open;
    u->text = line;
    return *open != '\0' && open[strcspn(open, blanks)] == '\0';
}

static bool read_txt(char *line, bm_utterance *u)
{
    u->id = take(&line);
    u->text = line + strspn(line, blanks);
    return u->id != NULL;
}

static bool read_stm(char *line, bm_utterance *u)
{
    u->id = take(&line);
    u->channel = take(&line);
    u->speaker = take(&line);
    if (u->speaker == NULL || !take_number(&line, &u->begin) ||
        !take_number(&line, &u->end))
        return false;
    line += strspn(line, blanks);
    if (*line == '<')
        take(&line); /* the label */
    u->text = line;
    return u->end >= u->begin;
}

static bool read_ctm(char *line, bm_utterance *u)
{
    double duration = 0;

    u->id = take(&line);
    u->channel = take(&line);
    if (u->channel == NULL || !take_number(&line, &u->begin) ||
        !take_number(&line, &duration))
        return false;
    u->end = u->begin + duration;
    u->text = take(&line);
    return u->text != NULL && strcmp(u->text, "<ALT_BEGIN>") != 0;
}

static bm_status add_json(bm_transcripts *t, const char *line, bm_utterance *u)
{
    json_error_t error;
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    const char *id = json_string_value(json_object_get(o, "id"));
    const char *text = json_string_value(json_object_get(o, "text"));
    const char *speaker = json_string_value(json_object_get(o, "speaker"));
    bm_status status = BM_OK;

    if (o == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: %s", t->path, u->line,
                       error.text);
    if (id == NULL || id[0] == '\0')
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s:%zu: no \"id\"; a line is %s", t->path,
                     u->line, "{\"id\": .., \"text\": ..}");
    BM_TRY_DONE(own(t, strdup(id)));
    u->id = t->owned[t->n_owned - 1];
    BM_TRY_DONE(own(t, strdup(text != NULL ? text : "")));
    u->text = t->owned[t->n_owned - 1];
    BM_TRY_DONE(own(t, strdup(speaker != NULL ? speaker : "")));
    u->speaker = t->owned[t->n_owned - 1];
    u->has_text = text != NULL;
    status = add(t, u);
done:
    json_decref(o);
    return status;
}

static const struct form {
    const char *name, *line, *ending;
    line_reader *read; /* NULL: JSON */
} forms[] = {
    [BM_FORM_trn] = {"trn", NULL, ".trn", read_trn},
    [BM_FORM_txt] = {"txt", NULL, ".txt", read_txt},
    [BM_FORM_stm] = {"stm", NULL, ".stm", read_stm},
    [BM_FORM_ctm] = {"ctm", NULL, ".ctm", read_ctm},
    [BM_FORM_json] = {"json", NULL, ".jsonl", NULL},
};

static const char *const lines[] = {
#define X(name, line) line,
    BM_TRANSCRIPT_FORMS(X)
#undef X
};

static bool is_timed(bm_transcript_form form)
{
    return form == BM_FORM_stm || form == BM_FORM_ctm;
}

static bm_status read_line(bm_transcripts *t, char *line, size_t number)
{
    static char none[] = "";
    bm_utterance u = {
        .line = number, .has_text = true, .speaker = none, .channel = none};

    trim(line);
    if (*line == '\0' || (is_timed(t->form) && strncmp(line, ";;", 2) == 0))
        return BM_OK;
    if (t->form == BM_FORM_json)
        return add_json(t, line, &u);
    if (!forms[t->form].read(line, &u))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: not a line of %s, which is: %s; another form "
                       "is chosen by --ref-form or --hyp-form",
                       t->path, number, forms[t->form].name, lines[t->form]);
    return add(t, &u);
}

/* By the ending of the name, or else by the first line. */
static bm_transcript_form guess_form(const bm_transcripts *t)
{
    const char *first = t->bytes + strspn(t->bytes, blanks);
    size_t n = strcspn(first, "\n");

    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        if (bm_ends_with(t->path, forms[k].ending))
            return (bm_transcript_form)k;
    while (n > 0 && strchr(blanks, first[n - 1]) != NULL)
        n--;
    if (n > 1 && first[0] == '{' && (first[1] == '"' || first[n - 1] == '}'))
        return BM_FORM_json;
    return n > 0 && first[n - 1] == ')' ? BM_FORM_trn : BM_FORM_txt;
}

bm_status bm_transcripts_read(bm_transcripts *t, const char *path,
                              const char *form)
{
    const char *kind = bm_file_kind(path);
    size_t size = 0, number = 0;
    char *at = NULL;

    *t = (bm_transcripts){.path = path};
    if (kind != NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a file of texts", path,
                       kind);
    BM_TRY(bm_file_read(path, LARGEST_FILE, &t->bytes, &size));
    if (strlen(t->bytes) != size)
        return BM_FAIL(BM_ERR_FORMAT, "%s has zero bytes; it is not a text",
                       path);
    t->form = guess_form(t);
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        if (strcmp(form, forms[k].name) == 0)
            t->form = (bm_transcript_form)k;
    at = t->bytes;
    while (*at != '\0') {
        char *line = at;

        at += strcspn(at, "\n");
        if (*at != '\0')
            *at++ = '\0';
        BM_TRY(read_line(t, line, ++number));
    }
    if (t->n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no texts", path);
    return BM_OK;
}

/* ---- pairs --------------------------------------------------------------- */

static int by_line(const void *a, const void *b)
{
    const bm_utterance *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

static int by_recording(const bm_utterance *x, const bm_utterance *y)
{
    int order = strcmp(x->id, y->id);

    return order != 0 ? order : strcasecmp(x->channel, y->channel);
}

static int by_time(const void *a, const void *b)
{
    const bm_utterance *x = a, *y = b;
    int order = by_recording(x, y);

    if (order == 0)
        order = (x->begin > y->begin) - (x->begin < y->begin);
    return order != 0 ? order : by_line(a, b);
}

static double middle(const bm_utterance *u)
{
    return (u->begin + u->end) / 2;
}

static int by_middle(const void *a, const void *b)
{
    const bm_utterance *x = a, *y = b;
    int order = by_recording(x, y);

    if (order == 0)
        order = (middle(x) > middle(y)) - (middle(x) < middle(y));
    return order != 0 ? order : by_line(a, b);
}

/* An utterance in a list that is sorted by id. */
typedef struct entry {
    const bm_utterance *of;
} entry;

static int by_id(const void *a, const void *b)
{
    const bm_utterance *x = ((const entry *)a)->of, *y = ((const entry *)b)->of;
    int order = strcmp(x->id, y->id);

    return order != 0 ? order : by_line(x, y);
}

static bool is_ignored(const bm_utterance *u)
{
    return strcasecmp(u->text, "ignore_time_segment_in_scoring") == 0;
}

static void drop_ignored(bm_transcripts *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (!is_ignored(&t->of[i]))
            t->of[n++] = t->of[i];
    t->n = n;
}

/* Is the middle of a word earlier than `time` in the segment's recording, or the
 * word in a recording before it? */
static bool is_before(const bm_utterance *word, const bm_utterance *segment,
                      double time)
{
    int order = by_recording(word, segment);

    return order < 0 || (order == 0 && middle(word) < time);
}

/* t->of[i].text <- the texts of [from, to), with blanks between them. */
static bm_status join(bm_transcripts *t, const bm_utterance *from, size_t n,
                      bm_utterance *into)
{
    size_t size = 1, at = 0;
    char *text = NULL;

    for (size_t i = 0; i < n; i++)
        size += strlen(from[i].text) + 1;
    text = malloc(size);
    for (size_t i = 0; text != NULL && i < n; i++)
        at +=
            (size_t)sprintf(text + at, "%s%s", i > 0 ? " " : "", from[i].text);
    if (text != NULL)
        text[at] = '\0';
    BM_TRY(own(t, text));
    into->text = text;
    return BM_OK;
}

/* All that one file has becomes a text, without ignored segments. */
static bm_status join_files(bm_transcripts *t)
{
    size_t n = 0;

    drop_ignored(t);
    qsort(t->of, t->n, sizeof *t->of, by_time);
    for (size_t from = 0, to = 0; from < t->n; from = to) {
        bm_utterance whole = t->of[from];

        for (to = from; to < t->n && strcmp(t->of[to].id, whole.id) == 0; to++)
            whole.line =
                t->of[to].line < whole.line ? t->of[to].line : whole.line;
        BM_TRY(join(t, t->of + from, to - from, &whole));
        t->of[n++] = whole;
    }
    t->n = n;
    qsort(t->of, n, sizeof *t->of, by_line);
    return BM_OK;
}

/* A segment's own id: the file, the channel and when it begins and ends. */
static bm_status name_segment(bm_transcripts *t, const bm_utterance *s,
                              char **out)
{
    size_t size = strlen(s->id) + strlen(s->channel) + 64;
    char *id = malloc(size);

    if (id != NULL)
        snprintf(id, size, "%s-%s-%.3f-%.3f", s->id, s->channel, s->begin,
                 s->end);
    BM_TRY(own(t, id));
    *out = id;
    return BM_OK;
}

/* hyp <- for each segment of ref an utterance of the words whose middle is in
 * it, in the order in which they begin. ref is sorted by time, hyp by middles. */
static bm_status cut_words(const bm_transcripts *ref, bm_transcripts *hyp,
                           size_t *outside)
{
    bm_transcripts cut = {.path = hyp->path, .form = hyp->form};
    size_t word = 0;
    bm_status status = BM_OK;

    for (size_t i = 0; i < ref->n; i++) {
        const bm_utterance *s = &ref->of[i];
        bm_utterance u = *s;
        size_t first = 0;

        for (; word < hyp->n && is_before(&hyp->of[word], s, s->begin); word++)
            ++*outside;
        first = word;
        while (word < hyp->n && is_before(&hyp->of[word], s, s->end))
            word++;
        if (is_ignored(s)) {
            *outside += word - first;
            continue;
        }
        qsort(hyp->of + first, word - first, sizeof *hyp->of, by_time);
        BM_TRY_DONE(join(hyp, hyp->of + first, word - first, &u));
        BM_TRY_DONE(name_segment(hyp, s, &u.id));
        BM_TRY_DONE(add(&cut, &u));
    }
    *outside += hyp->n - word;
    free(hyp->of);
    hyp->of = cut.of;
    hyp->n = cut.n;
    hyp->room = cut.room;
    cut.of = NULL;
done:
    free(cut.of);
    return status;
}

/* The segments of ref that count, with ids of their own. */
static bm_status name_segments(bm_transcripts *ref)
{
    drop_ignored(ref);
    for (size_t i = 0; i < ref->n; i++)
        BM_TRY(name_segment(ref, &ref->of[i], &ref->of[i].id));
    return BM_OK;
}

/* [n] entries, sorted by id; free(). Fails if an id occurs twice. */
static bm_status sort_ids(const bm_transcripts *t, entry **out)
{
    entry *sorted = calloc(t->n + 1, sizeof *sorted);
    bm_status status = BM_OK;

    if (sorted == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the ids of %s", t->path);
    for (size_t i = 0; i < t->n; i++)
        sorted[i].of = &t->of[i];
    qsort(sorted, t->n, sizeof *sorted, by_id);
    for (size_t i = 1; i < t->n && status == BM_OK; i++)
        if (strcmp(sorted[i - 1].of->id, sorted[i].of->id) == 0)
            status = BM_FAIL(BM_ERR_FORMAT,
                             "%s:%zu: id %s occurs in line %zu already",
                             t->path, sorted[i].of->line, sorted[i].of->id,
                             sorted[i - 1].of->line);
    if (status == BM_OK)
        *out = sorted;
    else
        free(sorted);
    return status;
}

/* A reference of segments needs words with times, or none with. */
static bm_status check_forms(const bm_transcripts *ref,
                             const bm_transcripts *hyp, size_t n_hyp)
{
    for (size_t k = 1; k < n_hyp; k++)
        if (ref->form == BM_FORM_stm &&
            (hyp[k].form == BM_FORM_ctm) != (hyp[0].form == BM_FORM_ctm))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s and %s: with a reference in stm, either all "
                           "hypotheses are in ctm or none",
                           hyp[0].path, hyp[k].path);
    return BM_OK;
}

bm_status bm_transcripts_pair(bm_transcripts *ref, bm_transcripts *hyp,
                              size_t n_hyp, size_t *outside)
{
    bool cut = ref->form == BM_FORM_stm && hyp[0].form == BM_FORM_ctm;

    BM_TRY(check_forms(ref, hyp, n_hyp));
    if (cut)
        qsort(ref->of, ref->n, sizeof *ref->of, by_time);
    for (size_t k = 0; k < n_hyp; k++) {
        outside[k] = 0;
        if (cut) {
            qsort(hyp[k].of, hyp[k].n, sizeof *hyp[k].of, by_middle);
            BM_TRY(cut_words(ref, &hyp[k], &outside[k]));
        } else if (is_timed(hyp[k].form)) {
            BM_TRY(join_files(&hyp[k]));
        }
    }
    if (cut)
        return name_segments(ref);
    return is_timed(ref->form) ? join_files(ref) : BM_OK;
}

bm_status bm_transcripts_speaker(bm_transcripts *t, size_t i)
{
    bm_utterance *u = &t->of[i];
    size_t n = strcspn(u->id, "-_");

    if (u->id[n] == '\0' || n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: %s has no speaker: such an id is SPEAKER-TEXT "
                       "or SPEAKER_TEXT; give a list with --utt2spk FILE",
                       t->path, u->line, u->id);
    BM_TRY(own(t, strndup(u->id, n)));
    u->speaker = t->owned[t->n_owned - 1];
    return BM_OK;
}

/* ---- matching ids -------------------------------------------------------- */

/* "a, b, .." of ids in one list that the other does not have. */
typedef struct names {
    char text[600];
    size_t n;
} names;

static void name(names *list, const bm_utterance *u)
{
    size_t at = strlen(list->text);

    if (list->n++ < NAMED)
        snprintf(list->text + at, sizeof list->text - at, "%s%.50s",
                 at > 0 ? ", " : "", u->id);
    else if (list->n == NAMED + 1)
        snprintf(list->text + at, sizeof list->text - at, ", ..");
}

static bm_status refuse(const bm_transcripts *ref, const bm_transcripts *hyp,
                        const names *missing, const names *more)
{
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%s and %s do not have the same ids: %zu missing in %s%s%s; "
        "%zu additional%s%s. Correct the files, or use --missing skip or empty",
        ref->path, hyp->path, missing->n, hyp->path, missing->n > 0 ? ": " : "",
        missing->text, more->n, more->n > 0 ? ": " : "", more->text);
}

bm_status bm_transcripts_match(const bm_transcripts *ref,
                               const bm_transcripts *hyp, bm_missing missing,
                               long *match, size_t *more)
{
    entry *a = NULL, *b = NULL;
    names only_a = {0}, only_b = {0};
    size_t j = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(sort_ids(ref, &a));
    BM_TRY_DONE(sort_ids(hyp, &b));
    for (size_t i = 0; i < ref->n; i++) {
        long *out = &match[a[i].of - ref->of];

        for (; j < hyp->n && strcmp(b[j].of->id, a[i].of->id) < 0; j++)
            name(&only_b, b[j].of);
        *out = BM_NO_UTTERANCE;
        if (j < hyp->n && strcmp(b[j].of->id, a[i].of->id) == 0) {
            *out = b[j].of->has_text ? b[j].of - hyp->of : BM_NO_UTTERANCE;
            j++;
        }
        if (*out == BM_NO_UTTERANCE && a[i].of->has_text)
            name(&only_a, a[i].of);
    }
    for (; j < hyp->n; j++)
        name(&only_b, b[j].of);
    *more = only_b.n;
    if (missing == BM_MISSING_ERROR && only_a.n + only_b.n > 0)
        status = refuse(ref, hyp, &only_a, &only_b);
done:
    free(a);
    free(b);
    return status;
}
