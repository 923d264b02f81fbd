/*
 * manifest_names.c - the names of fields that other programs give the columns of
 * tables and the keys of JSON lines: Common Voice (path, sentence, client_id),
 * DeepSpeech (wav_filename, transcript), NeMo (audio_filepath, offset), WeNet
 * (key, wav, txt), Hugging Face (file_name, transcription), Coqui (audio_file,
 * speaker_name).
 */
#include "io/import/manifest/manifest_parts.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME(name, field, kind)                                                \
    {                                                                          \
        name, offsetof(bm_manifest_fields, field), kind, false, false          \
    }
#define WEAK(name, field, kind)                                                \
    {                                                                          \
        name, offsetof(bm_manifest_fields, field), kind, false, true           \
    }
#define NUMBER(name, field)                                                    \
    {                                                                          \
        name, offsetof(bm_manifest_fields, field), NULL, true, false           \
    }

/* Of each field the weak ones last. */
const bm_manifest_name bm_manifest_names[BM_MANIFEST_NAMES] = {
    NAME("id", id, NULL),
    NAME("key", id, "wenet"),
    WEAK("utt_id", id, NULL),
    NAME("audio", path, "audio"),
    NAME("image", path, "image"),
    NAME("feats", path, "feats"),
    NAME("audio_filepath", path, "audio"),
    NAME("wav", path, "audio"),
    WEAK("path", path, NULL),
    WEAK("file", path, NULL),
    WEAK("file_name", path, NULL),
    WEAK("filename", path, NULL),
    WEAK("wav_filename", path, "audio"),
    WEAK("audio_file", path, "audio"),
    NAME("text", text, NULL),
    NAME("txt", text, "wenet"),
    WEAK("sentence", text, NULL),
    WEAK("transcript", text, NULL),
    WEAK("transcription", text, NULL),
    WEAK("label", text, NULL),
    NAME("speaker", speaker, NULL),
    WEAK("client_id", speaker, NULL),
    WEAK("spk", speaker, NULL),
    WEAK("speaker_id", speaker, NULL),
    WEAK("speaker_name", speaker, NULL),
    NUMBER("start", start),
    NUMBER("offset", start),
    NUMBER("duration", duration),
    NUMBER("end", end),
};

int bm_manifest_find_name(const char *name)
{
    for (int k = 0; k < BM_MANIFEST_NAMES; k++)
        if (strcasecmp(bm_manifest_names[k].name, name) == 0)
            return k;
    return -1;
}

bm_status bm_manifest_refuse_header(const bm_manifest *m, const char *header)
{
    const char delimiter[] = {bm_manifest_delimiter(header), '\0'};
    char known[440];
    size_t n = 0, before = offsetof(bm_manifest_fields, id);

    for (int k = 0; k < BM_MANIFEST_NAMES; k++) {
        const bm_manifest_name *name = &bm_manifest_names[k];
        bool number = name->number && !bm_manifest_is_audio(m);
        bool own = name->kind == NULL || strcmp(name->kind, m->kind) == 0;

        if (number || !own || n >= sizeof known)
            continue;
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                              n == 0                  ? ""
                              : name->field == before ? ", "
                                                      : "; ",
                              name->name);
        before = name->field;
    }
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: its first line, \"%.60s\", names no column that is "
                   "known. Known are %s. Rename the columns, or add a header "
                   "such as %s%stext",
                   m->path, header, known, m->kind,
                   delimiter[0] == '\t' ? "<TAB>" : delimiter);
}

static bool is_of_kind(const bm_manifest *m, const char *const spelled[],
                       int name)
{
    const char *kind = bm_manifest_names[name].kind;
    int wav = bm_manifest_find_name("wav");

    if (kind != NULL && strcmp(kind, "wenet") == 0)
        return bm_manifest_is_audio(m) && spelled[wav] != NULL;
    return kind == NULL || strcmp(kind, m->kind) == 0;
}

/* The name that has been chosen for the field of this one; -1: none. */
static int chosen_before(const bool chosen[], int name)
{
    for (int k = 0; k < name; k++)
        if (chosen[k] &&
            bm_manifest_names[k].field == bm_manifest_names[name].field)
            return k;
    return -1;
}

void bm_manifest_choose(bm_manifest *m, size_t line,
                        const char *const spelled[BM_MANIFEST_NAMES],
                        bool chosen[BM_MANIFEST_NAMES])
{
    for (int k = 0; k < BM_MANIFEST_NAMES; k++) {
        int before = chosen_before(chosen, k);

        chosen[k] = false;
        if (spelled[k] == NULL)
            continue;
        if (!is_of_kind(m, spelled, k) ||
            (before >= 0 && bm_manifest_names[k].weak &&
             !bm_manifest_names[before].weak))
            bm_manifest_count_unknown(m, spelled[k]);
        else if (before >= 0)
            bm_manifest_fault(m, line, "both \"%s\" and \"%s\"; give only one",
                              spelled[before], spelled[k]);
        else
            chosen[k] = true;
    }
}
