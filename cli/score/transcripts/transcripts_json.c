/*
 * transcripts_json.c - JSON lines: of bmuf decode, and manifests. A manifest
 * without ids, or with other names of the text, is read as bmuf pack reads it.
 */
#include "cli/score/transcripts/transcripts_parts.h"
#include "io/import/manifest/manifest.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A file, and what its lines have. */
typedef struct json_file {
    bm_transcripts *to;
    bm_transcript_role role;
    const char *kind;      /* of the files of a manifest; NULL: it is none */
    bool unnamed;          /* a line has no "id" */
    bool texts, predicted; /* a line has a text; a "pred_text" */
} json_file;

static const char *string(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* The text of a line; NULL: there is none. */
static const char *text_of(json_file *f, const json_t *o, bm_utterance *u)
{
    const char *predicted =
        f->role == BM_HYPOTHESIS ? string(o, "pred_text") : NULL;
    const char *text = predicted != NULL ? predicted : string(o, "text");

    u->predicted = predicted != NULL;
    u->has_text = text != NULL;
    f->predicted |= u->predicted;
    f->texts |= u->has_text;
    return text;
}

/* u->readings <- the texts of a hypothesis' "nbest", if it is there. */
static bm_status copy_readings(bm_transcripts *t, const json_t *o,
                               bm_utterance *u)
{
    const json_t *all = json_object_get(o, "nbest");
    size_t n = json_array_size(all), size = 1;
    char *at = NULL;

    for (size_t i = 0; i < n; i++) {
        const char *text = string(json_array_get(all, i), "text");

        size += text != NULL ? strlen(text) + 1 : 0;
    }
    at = malloc(size);
    BM_TRY(bm_transcripts_own(t, at));
    u->readings = at;
    for (size_t i = 0; i < n; i++) {
        const char *text = string(json_array_get(all, i), "text");

        if (text == NULL)
            continue;
        at = stpcpy(at, text) + 1;
        u->n_readings++;
    }
    return BM_OK;
}

static bm_status add_object(json_file *f, const json_t *o, const char *line,
                            size_t number)
{
    static char none[] = "";
    bm_transcripts *t = f->to;
    bm_utterance u = {.line = number, .channel = none};
    const char *id = string(o, "id"), *speaker = string(o, "speaker");
    const char *text = text_of(f, o, &u);

    if (f->kind == NULL && (id == NULL || text == NULL))
        f->kind = bm_manifest_kind(line);
    if (id == NULL ? f->kind == NULL : id[0] == '\0')
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: no \"id\"; a line is %s",
                       t->path, number, "{\"id\": .., \"text\": ..}");
    f->unnamed |= id == NULL;
    BM_TRY(bm_transcripts_copy(t, id != NULL ? id : "", &u.id));
    BM_TRY(bm_transcripts_copy(t, text != NULL ? text : "", &u.text));
    BM_TRY(bm_transcripts_copy(t, speaker != NULL ? speaker : "", &u.speaker));
    if (f->role == BM_HYPOTHESIS && json_object_get(o, "nbest") != NULL)
        BM_TRY(copy_readings(t, o, &u));
    return bm_transcripts_add(t, &u);
}

static bm_status add_line(json_file *f, const char *line, size_t number)
{
    json_error_t error;
    json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    bm_status status = BM_OK;

    if (o == NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: the line is not a JSON object: %s; give one "
                       "object a line",
                       f->to->path, number, error.text);
    status = add_object(f, o, line, number);
    json_decref(o);
    return status;
}

/* Takes over what bmuf pack reads in line i. */
static bm_status take_row(bm_transcripts *t, const bm_manifest *m, size_t i)
{
    bm_utterance *u = &t->of[i];
    bm_manifest_row row = {0};

    if (i < bm_manifest_size(m))
        row = bm_manifest_at(m, i);
    if (row.line != u->line)
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: not a line of a manifest",
                       t->path, u->line);
    BM_TRY(bm_transcripts_copy(t, row.id, &u->id));
    BM_TRY(bm_transcripts_copy(t, row.speaker, &u->speaker));
    if (u->predicted)
        return BM_OK;
    u->has_text = row.has_text;
    return bm_transcripts_copy(t, row.text, &u->text);
}

static bm_status read_manifest(json_file *f)
{
    bm_manifest *m = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_manifest_read_texts(&m, f->to->path, f->kind));
    for (size_t i = 0; i < f->to->n; i++)
        BM_TRY_DONE(take_row(f->to, m, i));
done:
    bm_manifest_free(m);
    return status;
}

bm_status bm_transcripts_read_json(bm_transcripts *t, char *text,
                                   bm_transcript_role role)
{
    json_file f = {.to = t, .role = role};
    char *line = NULL;
    size_t number = 0;

    while ((line = bm_transcripts_line(&text, &number)) != NULL)
        if (*line != '\0')
            BM_TRY(add_line(&f, line, number));
    if (f.kind != NULL && (f.unnamed || !f.texts))
        BM_TRY(read_manifest(&f));
    /* Without a "pred_text" nothing was recognised: "text" is the reference. */
    for (size_t i = 0; f.predicted && i < t->n; i++)
        t->of[i].has_text = t->of[i].predicted;
    return BM_OK;
}
