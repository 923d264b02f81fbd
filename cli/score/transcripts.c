/* transcripts.c - lines are cut in place, so that texts point into the file. */
#include "cli/score/transcripts_parts.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/grow.h"
#include "core/printable.h"
#include "core/words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 30 };

static const char blanks[] = " \t\r\n\v\f";

/* ---- lists of utterances ------------------------------------------------- */

bm_status bm_transcripts_add(bm_transcripts *t, const bm_utterance *u)
{
    BM_TRY(bm_grow(&t->of, t->n, &t->room, sizeof *t->of));
    t->of[t->n++] = *u;
    return BM_OK;
}

bm_status bm_transcripts_own(bm_transcripts *t, char *text)
{
    if (text != NULL && bm_grow(&t->owned, t->n_owned, &t->room_owned,
                                sizeof *t->owned) != BM_OK) {
        free(text);
        text = NULL;
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
    BM_TRY_DONE(bm_transcripts_own(t, strdup(id)));
    u->id = t->owned[t->n_owned - 1];
    BM_TRY_DONE(bm_transcripts_own(t, strdup(text != NULL ? text : "")));
    u->text = t->owned[t->n_owned - 1];
    BM_TRY_DONE(bm_transcripts_own(t, strdup(speaker != NULL ? speaker : "")));
    u->speaker = t->owned[t->n_owned - 1];
    u->has_text = text != NULL;
    status = bm_transcripts_add(t, u);
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

bool bm_form_is_timed(bm_transcript_form form)
{
    return form == BM_FORM_stm || form == BM_FORM_ctm;
}

static bm_status read_line(bm_transcripts *t, char *line, size_t number)
{
    static char none[] = "";
    bm_utterance u = {
        .line = number, .has_text = true, .speaker = none, .channel = none};

    trim(line);
    if (*line == '\0' ||
        (bm_form_is_timed(t->form) && strncmp(line, ";;", 2) == 0))
        return BM_OK;
    if (t->form == BM_FORM_json)
        return add_json(t, line, &u);
    if (!forms[t->form].read(line, &u))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: not a line of %s, which is: %s; another form "
                       "is chosen by --ref-form or --hyp-form",
                       t->path, number, forms[t->form].name, lines[t->form]);
    return bm_transcripts_add(t, &u);
}

/* By the ending of the name, or else by the first line. */
static bm_transcript_form guess_form(const bm_transcripts *t)
{
    const char *text = t->bytes + bm_utf8_mark(t->bytes);
    const char *first = text + strspn(text, blanks);
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
    if (strcmp(path, "-") == 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "-: texts are not read from standard input; write them "
                       "to a file");
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
    at = t->bytes + bm_utf8_mark(t->bytes);
    while (*at != '\0') {
        char *line = at;

        at += strcspn(at, "\n");
        if (*at != '\0')
            *at++ = '\0';
        BM_TRY(read_line(t, line, ++number));
    }
    if (t->n == 0 && t->form == BM_FORM_ctm) /* nothing was recognised */
        return bm_grow(&t->of, 0, &t->room, sizeof *t->of);
    if (t->n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no texts", path);
    return BM_OK;
}
