/* format.c - the list of formats, and those that are lines of text. */
#include "cli/decode/format.h"

#include "cli/json_output.h"
#include "cli/score/transcripts/transcripts.h"

#include <math.h>
#include <string.h>

static const bm_format *const formats[] = {
#define X(name, about) &bm_format_##name,
    BM_FORMATS(X)
#undef X
        NULL,
};

const bm_format *bm_format_find(const char *name)
{
    const bm_format *const *f = formats;

    while (strcmp((*f)->name, name) != 0)
        f++;
    return *f;
}

void bm_format_name(FILE *out, const char *name)
{
    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;
        fputc(c <= ' ' || c == 0x7f || c == '(' || c == ')' ? '_' : c, out);
    }
}

bool bm_format_has_spaces(const bm_reading *r)
{
    return strchr(r->text, ' ') != NULL;
}

/* ---- text ---------------------------------------------------------------- */

/* One line for each input, an empty one for an input that failed. */
static void write_txt(FILE *out, const bm_decoded *d)
{
    const bm_transcript *t = d->transcript;

    if (!d->alternatives) {
        fprintf(out, "%s\n", t != NULL ? t->readings[0].text : "");
        return;
    }
    for (size_t i = 0; t != NULL && i < t->n; i++)
        fprintf(out, "%.4f\t%s\n", t->readings[i].score, t->readings[i].text);
    fputc('\n', out);
}

const bm_format bm_format_txt = {
    .name = "txt",
    .alternatives = true,
    .write = write_txt,
};

/* As bmuf eval --hyp. */
static void write_trn(FILE *out, const bm_decoded *d)
{
    if (d->transcript == NULL)
        return;
    fprintf(out, "%s (", d->transcript->readings[0].text);
    bm_trn_id_print(out, d->input->id);
    fprintf(out, ")\n");
}

const bm_format bm_format_trn = {
    .name = "trn",
    .write = write_trn,
};

/* ---- JSON ---------------------------------------------------------------- */

/* Digits that matter: 0.1 ms, a tenth of a per mille. null: not finite. */
static json_t *number(double x)
{
    char text[400];

    if (!isfinite(x))
        return json_null();
    snprintf(text, sizeof text, "%.4f", x);
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

static json_t *words_of(const bm_reading *r)
{
    json_t *all = json_array();

    for (size_t i = 0; i < r->n_words; i++) {
        const bm_transcript_word *w = &r->words[i];

        json_array_append_new(
            all, json_pack("{s:s, s:o, s:o, s:o}", "word", w->text, "start",
                           number(w->start), "end", number(w->end),
                           "confidence", number(w->confidence)));
    }
    return all;
}

static json_t *reading(const bm_reading *r)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "text", r->text, "score",
                     number(r->score), "confidence", number(r->confidence),
                     "words", words_of(r));
}

static void write_json(FILE *out, const bm_decoded *d)
{
    const bm_transcript *t = d->transcript;
    const bm_input *input = d->input;
    json_t *o = json_pack("{s:o}", "id", bm_json_text(input->id));

    if (input->path[0] != '\0')
        json_object_set_new(o, "path", bm_json_text(input->shown));
    if (input->speaker[0] != '\0')
        json_object_set_new(o, "speaker", bm_json_text(input->speaker));
    if (t == NULL) {
        json_object_set_new(o, "error", bm_json_text(d->fault));
    } else {
        json_t *best = reading(&t->readings[0]), *rest = json_array();

        json_object_update(o, best);
        json_decref(best);
        json_object_set_new(o, "unit", json_string(input->unit));
        json_object_set_new(o, "length", number(t->length));
        for (size_t i = 0; i < t->n; i++)
            json_array_append_new(rest, reading(&t->readings[i]));
        if (d->alternatives)
            json_object_set(o, "nbest", rest);
        json_decref(rest);
    }
    json_dumpf(o, out, JSON_REAL_PRECISION(12));
    fputc('\n', out);
    json_decref(o);
}

const bm_format bm_format_json = {
    .name = "json",
    .alternatives = true,
    .write = write_json,
};
