/*
 * manifest_json.c - JSON lines: objects with the names of manifest_names.c, and
 * the cuts of Lhotse, each of which is a recording with supervisions.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole number as a text. */
typedef struct number_text {
    char text[24];
} number_text;

/* The text of a field; NULL if it is missing or invalid. A whole number, as other
 * programs number speakers, is written to *room. Adds a fault for other values. */
static const char *text_of(bm_manifest *m, size_t line, const json_t *value,
                           const char *key, number_text *room)
{
    if (value == NULL || json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value)) {
        snprintf(room->text, sizeof room->text, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        return room->text;
    }
    bm_manifest_fault(m, line, "\"%s\" is not a text", key);
    return NULL;
}

/* The same for a path, which Hugging Face's data sets have in an object. */
static const char *path_of(bm_manifest *m, size_t line, const json_t *value,
                           const char *key, number_text *room)
{
    const json_t *inner = json_object_get(value, "path");

    if (json_is_array(value))
        bm_manifest_fault_once(m, line,
                               "\"%s\" is a list of files, of which only one "
                               "is read; write a line for each file, or join "
                               "them in one",
                               key);
    else if (json_is_object(value) && !json_is_string(inner))
        bm_manifest_fault_once(m, line,
                               "\"%s\" is an object without a \"path\"; write "
                               "the file, and its path here as a text",
                               key);
    else
        return text_of(m, line, inner != NULL ? inner : value, key, room);
    return NULL;
}

/* Seconds; 0 if the field is missing. */
static double seconds_of(bm_manifest *m, size_t line, const json_t *value,
                         const char *key, double least)
{
    double x = json_number_value(value);

    if (value == NULL)
        return 0;
    if (!bm_manifest_is_audio(m))
        bm_manifest_fault(m, line,
                          "\"%s\" is for recordings; cut \"%s\" before packing",
                          key, m->kind);
    else if (!json_is_number(value) || !(x >= least && x <= BM_MOST_SECONDS))
        bm_manifest_fault(m, line,
                          "\"%s\" is not a number of seconds from %g to %g",
                          key, least, BM_MOST_SECONDS);
    return x;
}

/* ---- objects with one value for each field ------------------------------- */

static void set_field(bm_manifest *m, size_t line, const bm_manifest_name *name,
                      const char *key, const json_t *value, number_text *room,
                      bm_manifest_fields *f)
{
    char *field = (char *)f + name->field;
    bool start = name->field == offsetof(bm_manifest_fields, start);

    if (name->number) {
        double x =
            seconds_of(m, line, value, key, start ? 0 : BM_LEAST_SECONDS);
        memcpy(field, &x, sizeof x);
    } else {
        bool path = name->field == offsetof(bm_manifest_fields, path);
        const char *text = path ? path_of(m, line, value, key, room)
                                : text_of(m, line, value, key, room);
        memcpy(field, &text, sizeof text);
    }
}

/* What bmuf decode --format json says of a text, beside what a manifest has. */
static bool is_of_decode(const json_t *object, const char *key)
{
    return json_object_get(object, "score") != NULL &&
           json_object_get(object, "words") != NULL &&
           bm_is_word_of(key, "score confidence words unit length nbest");
}

/* Keys by their names; null is a value that is missing. */
static void look_up(bm_manifest *m, size_t line, json_t *object,
                    const char *spelled[BM_MANIFEST_NAMES])
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(object, key, value)
    {
        int name = bm_manifest_find_name(key);

        if (json_is_null(value))
            continue;
        if (name < 0 && !is_of_decode(object, key))
            bm_manifest_count_unknown(m, key);
        else if (name < 0)
            continue;
        else if (spelled[name] != NULL)
            bm_manifest_fault(m, line, "both \"%s\" and \"%s\"; give only one",
                              spelled[name], key);
        else
            spelled[name] = key;
    }
}

/* Files of another kind are for another option. */
static void report_missing(bm_manifest *m, size_t line,
                           const char *const spelled[])
{
    static const char *const options[][2] = {
        {"audio", "audio"}, {"image", "images"}, {"feats", "features"}};

    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        const char *key = options[k][0];

        if (spelled[bm_manifest_find_name(key)] == NULL)
            continue;
        bm_manifest_fault_once(m, line,
                               "\"%s\" is missing; there is \"%s\", which "
                               "--%s takes",
                               m->kind, key, options[k][1]);
        return;
    }
    bm_manifest_fault(m, line, "\"%s\" is missing", m->kind);
}

/* Of files with the names of other programs, or in objects, ids are made. */
static void check_object(bm_manifest *m, size_t line, const json_t *object,
                         const char *const spelled[], const bool chosen[])
{
    bool id = false, path = false;
    int name = bm_manifest_find_name(m->kind);
    bool own =
        chosen[name] && !json_is_object(json_object_get(object, spelled[name]));

    for (int k = 0; k < BM_MANIFEST_NAMES; k++) {
        size_t field = bm_manifest_names[k].field;

        id |= chosen[k] && field == offsetof(bm_manifest_fields, id);
        path |= chosen[k] && field == offsetof(bm_manifest_fields, path);
    }
    if (!id && (own || !path))
        bm_manifest_fault(m, line, "\"id\" is missing");
    if (!path)
        report_missing(m, line, spelled);
}

/* A row of WeNet's, whose paths are relative to where it runs. */
static bool is_of_wenet(const bool chosen[])
{
    return chosen[bm_manifest_find_name("key")] &&
           chosen[bm_manifest_find_name("wav")];
}

static bm_status read_object(bm_manifest *m, size_t line, json_t *object)
{
    const char *spelled[BM_MANIFEST_NAMES] = {NULL};
    bool chosen[BM_MANIFEST_NAMES] = {false};
    number_text numbers[BM_MANIFEST_NAMES];
    size_t before = m->faults.n;
    bm_manifest_fields f = {0};

    look_up(m, line, object, spelled);
    bm_manifest_choose(m, line, spelled, chosen);
    check_object(m, line, object, spelled, chosen);
    for (int k = 0; k < BM_MANIFEST_NAMES; k++)
        if (chosen[k])
            set_field(m, line, &bm_manifest_names[k], spelled[k],
                      json_object_get(object, spelled[k]), &numbers[k], &f);
    f.where_run = is_of_wenet(chosen);
    return m->faults.n > before ? BM_OK : bm_manifest_add(m, line, &f);
}

/* ---- Lhotse's cuts ------------------------------------------------------- */

/* Of several others, or of silence: it has no recording of its own. */
static bool is_made_cut(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));

    return json_array_size(json_object_get(object, "tracks")) > 0 ||
           (type != NULL && bm_is_word_of(type, "MixedCut PaddingCut"));
}

static bool is_cut(const json_t *object)
{
    return json_is_object(json_object_get(object, "recording")) ||
           json_is_object(json_object_get(object, "features")) ||
           json_object_get(object, "supervisions") != NULL ||
           is_made_cut(object);
}

/* What the file is that an object names, by its key; "audio" if that tells
 * nothing. NULL: it names none. */
static const char *kind_of(json_t *object)
{
    const char *key = NULL, *kind = NULL;
    json_t *value = NULL;

    json_object_foreach(object, key, value)
    {
        int name = bm_manifest_find_name(key);

        if (name < 0 ||
            bm_manifest_names[name].field != offsetof(bm_manifest_fields, path))
            continue;
        if (bm_manifest_names[name].kind != NULL)
            return bm_manifest_names[name].kind;
        kind = "audio";
    }
    return kind;
}

/* What is combined to cuts; NULL: the object is none of it. */
static const char *part_of_cuts(json_t *object)
{
    bool belongs = json_is_string(json_object_get(object, "recording_id"));

    if (kind_of(object) != NULL)
        return NULL;
    if (json_is_array(json_object_get(object, "sources")))
        return "recordings";
    if (belongs && json_object_get(object, "storage_path") != NULL)
        return "features";
    return belongs && json_object_get(object, "start") != NULL ? "supervisions"
                                                               : NULL;
}

static void refuse_part(bm_manifest *m, size_t line, const char *part)
{
    bm_manifest_fault_once(m, line,
                           "one of Lhotse's %s, of which cuts are made; give "
                           "--audio CUTS, which CutSet.from_manifests("
                           "recordings, supervisions).to_file(CUTS) writes, or "
                           "lhotse cut simple -r RECORDINGS -s SUPERVISIONS "
                           "CUTS",
                           part);
}

/* The file or the command of a cut's recording; NULL after a fault. *pipe: room
 * for a command; free(). */
static const char *source_of_cut(bm_manifest *m, size_t line,
                                 const json_t *object, char **pipe)
{
    const json_t *recording = json_object_get(object, "recording");
    const json_t *all = json_object_get(recording, "sources");
    const json_t *source = json_array_get(all, 0);
    const char *type = json_string_value(json_object_get(source, "type"));
    const char *path = json_string_value(json_object_get(source, "source"));
    size_t room = path != NULL ? strlen(path) + 3 : 0;

    if (type == NULL || path == NULL || json_array_size(all) != 1)
        bm_manifest_fault(m, line,
                          "a cut without one source of a recording; write the "
                          "cuts with their recordings, as cuts.to_file() "
                          "does");
    else if (strcmp(type, "file") == 0)
        return path;
    else if (strcmp(type, "command") != 0)
        bm_manifest_fault(m, line,
                          "the recording is of type \"%.40s\", and only files "
                          "are read; save it with cuts.save_audios()",
                          type);
    else if ((*pipe = malloc(room)) != NULL)
        snprintf(*pipe, room, "%s |", path);
    return *pipe;
}

/* Notes once that the rate of the cuts is not that of their recordings. */
static void note_rate(bm_manifest *m, size_t line, const json_t *transform)
{
    json_int_t rate = json_integer_value(json_object_get(
        json_object_get(transform, "kwargs"), "target_sampling_rate"));

    if (m->resampled)
        return;
    m->resampled = true;
    bm_log(BM_NOTE,
           "%s:%zu: the cut is resampled to %" JSON_INTEGER_FORMAT
           " Hz, but recordings are read as they are, and resampled to "
           "features.rate alone; set it to that of the cuts",
           m->file, line, rate);
}

/* The speed by transforms; 0 after a fault. Of others, only a change of the rate
 * needs nothing. */
static double speed_of(bm_manifest *m, size_t line, const json_t *transforms)
{
    const json_t *one = NULL;
    double speed = 1;
    size_t i = 0;

    json_array_foreach(transforms, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        double factor = json_number_value(
            json_object_get(json_object_get(one, "kwargs"), "factor"));
        bool resample = name != NULL && strcmp(name, "Resample") == 0;
        bool known = name != NULL && strcmp(name, "Speed") == 0 && m->speeds;

        if (resample) {
            note_rate(m, line, one);
            continue;
        }
        speed *= factor;
        if (known && speed >= BM_LEAST_SPEED && speed <= BM_MOST_SPEED)
            continue;
        bm_manifest_fault_once(
            m, line,
            "the cut has \"transforms\", of which %.40s is not applied here; "
            "save it with cuts.save_audios()",
            name == NULL ? "one without a name"
            : known      ? "a speed below 0.25 or above 4"
                         : name);
        return 0;
    }
    return speed;
}

/* Times of the cut are those after its speed is changed. */
static void set_excerpt(bm_manifest *m, size_t line, const json_t *object,
                        bm_manifest_fields *f)
{
    const json_t *recording = json_object_get(object, "recording");

    f->speed = speed_of(m, line, json_object_get(recording, "transforms"));
    f->start = f->speed * seconds_of(m, line, json_object_get(object, "start"),
                                     "start", 0);
    f->duration =
        f->speed * seconds_of(m, line, json_object_get(object, "duration"),
                              "duration", BM_LEAST_SECONDS);
}

/* From 1, where Lhotse counts from 0; 0: the cut names none. */
static long channel_of_cut(bm_manifest *m, size_t line, const json_t *object)
{
    const json_t *channel = json_object_get(object, "channel");
    json_int_t value = json_integer_value(channel);

    if (channel == NULL || json_is_null(channel))
        return 0;
    if (!json_is_integer(channel) || value < 0 || value >= BM_MOST_CHANNELS)
        bm_manifest_fault(m, line,
                          "\"channel\" is not one channel, counted from 0; "
                          "save the cut with cuts.save_audios()");
    return (long)value + 1;
}

/* The texts of all supervisions, with blanks between; NULL: there is none. *all:
 * room for it; free(). */
static bm_status text_of_cut(const json_t *supervisions, char **all)
{
    size_t room = 1, n = 0, i = 0, length = 0;
    const json_t *one = NULL;
    char *out = NULL;

    json_array_foreach(supervisions, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "text"));

        n += text != NULL;
        room += text != NULL ? strlen(text) + 1 : 0;
    }
    if (n == 0)
        return BM_OK;
    out = calloc(room, 1);
    if (out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    room = 0;
    json_array_foreach(supervisions, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "text"));

        if (text == NULL)
            continue;
        if (room > 0)
            out[room++] = ' ';
        length = strlen(text);
        memcpy(out + room, text, length + 1);
        room += length;
    }
    *all = out;
    return BM_OK;
}

static bm_status read_cut(bm_manifest *m, size_t line, const json_t *object)
{
    const json_t *supervisions = json_object_get(object, "supervisions");
    const json_t *first = json_array_get(supervisions, 0);
    size_t before = m->faults.n;
    char *pipe = NULL, *text = NULL;
    number_text id;
    bm_manifest_fields f = {0};
    bm_status status = BM_OK;

    if (is_made_cut(object)) {
        bm_manifest_fault_once(m, line,
                               "a cut of Lhotse that is mixed or padded, which "
                               "is not done here; save it with "
                               "cuts.save_audios()");
        return BM_OK;
    }
    if (json_object_get(object, "recording") == NULL) {
        bm_manifest_fault_once(m, line,
                               "a cut of Lhotse without a recording; its "
                               "features are not read, only recordings. Give "
                               "--audio cuts that have them: lhotse cut simple "
                               "-r RECORDINGS -s SUPERVISIONS CUTS");
        return BM_OK;
    }
    if (!bm_manifest_is_audio(m)) {
        bm_manifest_fault_once(m, line,
                               "a cut of Lhotse, of which the recordings are "
                               "read; give the file with --audio");
        return BM_OK;
    }
    f.id = text_of(m, line, json_object_get(object, "id"), "id", &id);
    if (f.id == NULL)
        bm_manifest_fault(m, line, "\"id\" is missing");
    f.path = source_of_cut(m, line, object, &pipe);
    f.where_run = true;
    set_excerpt(m, line, object, &f);
    f.channel = channel_of_cut(m, line, object);
    f.speaker = json_string_value(json_object_get(first, "speaker"));
    BM_TRY_DONE(text_of_cut(supervisions, &text));
    f.text = text;
    if (m->faults.n == before)
        status = bm_manifest_add(m, line, &f);
done:
    free(pipe);
    free(text);
    return status;
}

static bm_status refuse_espnet(const bm_manifest *m)
{
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s is a data.json of ESPnet 1; give the data directory of "
                   "Kaldi that it was made of, with feats.scp, text and "
                   "utt2spk, to --kaldi",
                   m->path);
}

bm_status bm_manifest_json_begins(const bm_manifest *m, const char *second)
{
    if (second != NULL && strstr(second, "\"utts\"") != NULL)
        return refuse_espnet(m);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: a JSON object over several lines; a manifest has one "
                   "object a line, as jq -c writes them",
                   m->path);
}

const char *bm_manifest_kind(const char *line)
{
    json_t *object = json_loads(line, 0, NULL);
    const char *kind = is_cut(object) ? "audio" : kind_of(object);

    json_decref(object);
    return kind;
}

bm_status bm_manifest_json(bm_manifest *m, size_t line, const char *text,
                           size_t length)
{
    json_error_t error;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    bm_status status = BM_OK;

    if (object == NULL && bm_utf8_length(text) < strlen(text))
        bm_manifest_fault_utf8(m, line, bm_utf8_length(text) + 1);
    else if (object == NULL)
        bm_manifest_fault(m, line, "not JSON: %s", error.text);
    else if (!json_is_object(object))
        bm_manifest_fault(m, line, "not a JSON object { .. }");
    else if (json_is_object(json_object_get(object, "utts")))
        status = refuse_espnet(m);
    else if (part_of_cuts(object) != NULL)
        refuse_part(m, line, part_of_cuts(object));
    else if (is_cut(object))
        status = read_cut(m, line, object);
    else
        status = read_object(m, line, object);
    json_decref(object);
    return status;
}
