/* transcripts_pair.c - utterances of a reference and of hypotheses that belong
 * together: by times, then by ids. */
#include "cli/score/transcripts/transcripts_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAMED = 10, LONGEST_NAMED = 50 }; /* ids in a message, their bytes */

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

/* As by_time, with all channels of a recording among each other. */
static int by_begin(const void *a, const void *b)
{
    const bm_utterance *x = a, *y = b;
    int order = strcmp(x->id, y->id);

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
    BM_TRY(bm_transcripts_own(t, text));
    into->text = text;
    return BM_OK;
}

/* All that one file has becomes a text, of all channels, without ignored
 * segments. */
static bm_status join_files(bm_transcripts *t)
{
    size_t n = 0;

    drop_ignored(t);
    qsort(t->of, t->n, sizeof *t->of, by_begin);
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
    BM_TRY(bm_transcripts_own(t, id));
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
        BM_TRY_DONE(bm_transcripts_add(&cut, &u));
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

/* A word in a recording that the reference does not have is in no segment: of
 * all words that is a mistake in the names. Both are sorted by recordings. */
static bm_status check_recordings(const bm_transcripts *ref,
                                  const bm_transcripts *hyp)
{
    size_t i = 0, j = 0;

    while (i < ref->n && j < hyp->n) {
        int order = by_recording(&ref->of[i], &hyp->of[j]);

        if (order == 0)
            return BM_OK;
        i += order < 0;
        j += order > 0;
    }
    if (ref->n == 0 || hyp->n == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s and %s have no recording in common: \"%.50s\", channel "
                   "%.20s, in %s, but \"%.50s\", channel %.20s, in %s. Correct "
                   "the names and channels",
                   ref->path, hyp->path, ref->of[0].id, ref->of[0].channel,
                   ref->path, hyp->of[0].id, hyp->of[0].channel, hyp->path);
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
            BM_TRY(check_recordings(ref, &hyp[k]));
            BM_TRY(cut_words(ref, &hyp[k], &outside[k]));
        } else if (bm_form_is_timed(hyp[k].form)) {
            BM_TRY(join_files(&hyp[k]));
        }
    }
    if (cut)
        return name_segments(ref);
    return bm_form_is_timed(ref->form) ? join_files(ref) : BM_OK;
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
    BM_TRY(bm_transcripts_own(t, strndup(u->id, n)));
    u->speaker = t->owned[t->n_owned - 1];
    return BM_OK;
}

/* ---- matching ids -------------------------------------------------------- */

/* "a, b, .." of ids in one list that the other does not have. */
typedef struct names {
    char text[600];
    size_t n;
} names;

/* The end of a long id, where ids of a set differ. */
static const char *end_of(const char *id)
{
    size_t n = strlen(id);

    id += n > LONGEST_NAMED ? n - LONGEST_NAMED : 0;
    while ((*id & 0xc0) == 0x80) /* within a character of UTF-8 */
        id++;
    return id;
}

static void name(names *list, const bm_utterance *u)
{
    size_t at = strlen(list->text);
    const char *end = end_of(u->id);

    if (list->n++ < NAMED)
        snprintf(list->text + at, sizeof list->text - at, "%s%s%s",
                 at > 0 ? ", " : "", end > u->id ? ".." : "", end);
    else if (list->n == NAMED + 1)
        snprintf(list->text + at, sizeof list->text - at, ", ..");
}

static bm_status refuse(const bm_transcripts *ref, const bm_transcripts *hyp,
                        const names *missing, const names *more)
{
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%s, read as %s, and %s, read as %s, do not have the same ids: "
        "%zu missing in %s%s%s; %zu additional%s%s. Correct the files, give "
        "their forms with --ref-form and --hyp-form, or use --missing skip or "
        "empty",
        ref->path, bm_form_name(ref->form), hyp->path, bm_form_name(hyp->form),
        missing->n, hyp->path, missing->n > 0 ? ": " : "", missing->text,
        more->n, more->n > 0 ? ": " : "", more->text);
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
