/* transcripts.c - lines are cut in place, so that texts point into the file. */
#include "cli/score/transcripts/transcripts_parts.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/grow.h"
#include "core/text/printable.h"
#include "core/text/words.h"

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

bm_status bm_transcripts_copy(bm_transcripts *t, const char *text, char **out)
{
    BM_TRY(bm_transcripts_own(t, strdup(text)));
    *out = t->owned[t->n_owned - 1];
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

char *bm_transcripts_line(char **at, size_t *number)
{
    char *line = *at;

    if (*line == '\0')
        return NULL;
    *at += strcspn(line, "\n");
    if (**at != '\0')
        *(*at)++ = '\0';
    trim(line);
    ++*number;
    return line;
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

/* PyLaia's, whose text is joined by join_characters. */
static bool read_pylaia(char *line, bm_utterance *u)
{
    u->id = take(&line);
    u->text = line;
    return u->id != NULL;
}

static const struct form {
    const char *ending; /* NULL: none */
    line_reader *read;  /* NULL: not by lines, or JSON */
} forms[] = {
    [BM_FORM_trn] = {".trn", read_trn}, [BM_FORM_txt] = {".txt", read_txt},
    [BM_FORM_stm] = {".stm", read_stm}, [BM_FORM_ctm] = {".ctm", read_ctm},
    [BM_FORM_json] = {".jsonl", NULL},  [BM_FORM_pylaia] = {NULL, read_pylaia},
    [BM_FORM_shards] = {NULL, NULL},
};

enum { FORMS = sizeof forms / sizeof forms[0] };

static const char *const names[] = {
#define X(name, line) #name,
    BM_TRANSCRIPT_FORMS(X)
#undef X
        "shards"};

static const char *const lines[] = {
#define X(name, line) line,
    BM_TRANSCRIPT_FORMS(X)
#undef X
};

const char *bm_form_name(bm_transcript_form form)
{
    return names[form];
}

bool bm_form_is_timed(bm_transcript_form form)
{
    return form == BM_FORM_stm || form == BM_FORM_ctm;
}

/* Lines that are no texts: empty ones and comments. */
static bool is_skipped(const bm_transcripts *t, const char *line)
{
    return *line == '\0' ||
           (bm_form_is_timed(t->form) && strncmp(line, ";;", 2) == 0) ||
           (t->form == BM_FORM_pylaia && line[strspn(line, blanks)] == '#');
}

static bm_status read_line(bm_transcripts *t, char *line, size_t number)
{
    static char none[] = "";
    char fault[BM_LIST_FAULT];
    bm_utterance u = {
        .line = number, .has_text = true, .speaker = none, .channel = none};

    if (is_skipped(t, line))
        return BM_OK;
    if (!forms[t->form].read(line, &u))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: not a line of %s, which is: %s; another form "
                       "is chosen by --ref-form or --hyp-form",
                       t->path, number, names[t->form], lines[t->form]);
    if (t->form == BM_FORM_pylaia && !bm_list_words_join(u.text, fault))
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: %s", t->path, number, fault);
    return bm_transcripts_add(t, &u);
}

static bm_status read_lines(bm_transcripts *t, char *text)
{
    char *line = NULL;
    size_t number = 0;

    while ((line = bm_transcripts_line(&text, &number)) != NULL)
        BM_TRY(read_line(t, line, number));
    return BM_OK;
}

/* By the ending of the name, or else by the first line. */
static bm_transcript_form guess_by_name(const char *path, const char *text)
{
    const char *first = text + strspn(text, blanks);
    size_t n = strcspn(first, "\n");

    for (size_t k = 0; k < FORMS; k++)
        if (forms[k].ending != NULL && bm_ends_with(path, forms[k].ending))
            return (bm_transcript_form)k;
    while (n > 0 && strchr(blanks, first[n - 1]) != NULL)
        n--;
    if (n > 1 && first[0] == '{' && (first[1] == '"' || first[n - 1] == '}'))
        return BM_FORM_json;
    return n > 0 && first[n - 1] == ')' ? BM_FORM_trn : BM_FORM_txt;
}

/* A word of PyLaia's for a blank is in no other text. Words of one character may be
 * words elsewhere. */
static bm_transcript_form guess_form(const char *path, const char *text)
{
    bm_transcript_form form = guess_by_name(path, text);
    bm_list_words words = {0};

    if (form != BM_FORM_txt)
        return form;
    bm_list_words_add_lines(&words, text);
    return words.spaced ? BM_FORM_pylaia : BM_FORM_txt;
}

/* *text <- the file after a byte order mark, t->form <- its form. */
static bm_status read_file(bm_transcripts *t, const char *form, char **text)
{
    const char *kind = bm_file_kind(t->path);
    size_t size = 0;

    if (kind != NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a file of texts", t->path,
                       kind);
    BM_TRY(bm_file_read(t->path, LARGEST_FILE, &t->bytes, &size));
    if (strlen(t->bytes) != size)
        return BM_FAIL(BM_ERR_FORMAT, "%s has zero bytes; it is not a text",
                       t->path);
    *text = t->bytes + bm_utf8_mark(t->bytes);
    t->form = guess_form(t->path, *text);
    for (size_t k = 0; k < FORMS; k++)
        if (strcmp(form, names[k]) == 0)
            t->form = (bm_transcript_form)k;
    return BM_OK;
}

static bool is_packed(const char *path)
{
    return bm_is_folder(path) || bm_file_kind(path) == bm_kind_hdf5;
}

static bm_status read_texts(bm_transcripts *t, const char *form,
                            bm_transcript_role role)
{
    char *text = NULL;

    if (role == BM_REFERENCE &&
        (strcmp(form, "shards") == 0 ||
         (strcmp(form, "auto") == 0 && is_packed(t->path))))
        return bm_transcripts_read_shards(t);
    if (is_packed(t->path))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is a folder or a packed set, not a file of texts; "
                       "only the reference may be a packed set",
                       t->path);
    BM_TRY(read_file(t, form, &text));
    return t->form == BM_FORM_json ? bm_transcripts_read_json(t, text, role)
                                   : read_lines(t, text);
}

bm_status bm_transcripts_read(bm_transcripts *t, const char *path,
                              const char *form, bm_transcript_role role)
{
    *t = (bm_transcripts){.path = path};
    if (strcmp(path, "-") == 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "-: texts are not read from standard input; write them "
                       "to a file");
    BM_TRY(read_texts(t, form, role));
    if (t->n == 0 && t->form == BM_FORM_ctm) /* nothing was recognised */
        return bm_grow(&t->of, 0, &t->room, sizeof *t->of);
    if (t->n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no texts", path);
    return BM_OK;
}

bm_list_words bm_transcripts_words(const bm_transcripts *t)
{
    bm_list_words words = {0};

    for (size_t i = 0; i < t->n; i++)
        bm_list_words_add(&words, t->of[i].text);
    return words;
}
