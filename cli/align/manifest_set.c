#include "cli/align/manifest_set.h"

#include "cli/align/stop_request.h"
#include "core/file/path.h"
#include "core/file/temporary.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/import/manifest/manifest.h"
#include "recognise/front_end.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LOGGED = 10 };

/* The files of a manifest on their way into shards. */
typedef struct packing {
    const bm_recogniser *model;
    bm_front_end *front;
    bm_manifest *manifest;
    bm_shard_writer *writer;
    bool compose;    /* texts into Unicode's form C, as the vocabulary is */
    int32_t *labels; /* [room] */
    size_t room, unread, unknown;
} packing;

void bm_manifest_set_remove(bm_manifest_set *s)
{
    DIR *directory = s->directory[0] != '\0' ? opendir(s->directory) : NULL;
    const struct dirent *entry = NULL;
    char path[PATH_MAX];

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' &&
            bm_path_join(path, s->directory, entry->d_name) == BM_OK)
            unlink(path);
    if (directory != NULL) {
        closedir(directory);
        rmdir(s->directory);
    }
    s->directory[0] = '\0';
}

/* The key of a manifest that has the files of this kind. */
static bm_status open_manifest(packing *p, const char *path)
{
    static const char *const keys[] = {[BM_RECORDINGS] = "audio",
                                       [BM_IMAGES] = "image",
                                       [BM_FEATURE_FILES] = "feats"};
    bm_input_kind kind = bm_front_end_kind(p->front);

    if (kind == BM_PACKED_ONLY)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model's features can be made by bmuf pack alone; "
                       "pack %s and align that",
                       path);
    return bm_manifest_read(&p->manifest, path, keys[kind], 100, 0);
}

/* Every row needs its speaker. */
static bm_status check_speakers(const packing *p)
{
    for (size_t i = 0; i < bm_manifest_size(p->manifest); i++) {
        bm_manifest_row row = bm_manifest_at(p->manifest, i);

        if (row.speaker[0] == '\0')
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s:%zu: %s has no \"speaker\", by which the "
                           "model's features are normalised; add it to each "
                           "row",
                           bm_manifest_path(p->manifest), row.line, row.id);
    }
    return BM_OK;
}

/* Files that cannot be used are named in the second pass. */
static bm_status learn_speakers(packing *p)
{
    BM_TRY(check_speakers(p));
    BM_TRY(bm_front_end_speakers(p->front, bm_manifest_speakers(p->manifest)));
    for (size_t i = 0; i < bm_manifest_size(p->manifest); i++) {
        bm_manifest_row row = bm_manifest_at(p->manifest, i);
        bm_excerpt part = {row.start, row.duration, row.channel};
        bm_status status = BM_OK;

        BM_TRY(bm_stop_request_check());
        status =
            bm_front_end_learn(p->front, row.speaker_number, row.path, part);
        if (status != BM_ERR_FORMAT && status != BM_ERR_MISSING)
            BM_TRY(status);
    }
    return BM_OK;
}

/* As packing does it. */
static bm_status normalise(packing *p)
{
    const char *over = bm_front_end_normalise(p->front);

    if (strcmp(over, "kaldi") == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model's features are normalised by statistics of "
                       "Kaldi's; pack %s first, and align that",
                       bm_manifest_path(p->manifest));
    return strcmp(over, "speaker") == 0 ? learn_speakers(p) : BM_OK;
}

static bm_status open_writer(packing *p, const char *directory)
{
    bm_shard_settings set = {0};
    bm_shard_meta meta = {.features = p->model->features,
                          .vocab = p->model->vocab,
                          .features_text = p->model->features_text,
                          .text_form = p->compose ? "nfc" : "none",
                          .frame_shift = bm_front_end_shift(p->front)};

    BM_TRY(bm_config_fill(NULL, "shard", bm_shard_options, &set));
    set.store = "f32";
    return bm_shard_writer_open(&p->writer, directory, "data", &set, &meta);
}

static bm_status encode(packing *p, const bm_manifest_row *row, size_t *n)
{
    const char *text = row->text;
    char *composed = NULL, first[64];
    size_t unknown = 0;
    bm_status status = BM_OK;

    if (p->compose) {
        BM_TRY(bm_text_nfc(text, &composed));
        text = composed;
    }
    BM_TRY_DONE(bm_grow(&p->labels, strlen(text), &p->room, sizeof *p->labels));
    BM_TRY_DONE(
        bm_vocab_encode(p->model->vocab, text, p->labels, n, &unknown, first));
    if (unknown > 0 && p->unknown++ < MOST_LOGGED)
        bm_log(BM_WARNING,
               "%s: %s of its text %s not in the model's vocabulary and %s "
               "not aligned, e.g. '%s'",
               row->id, bm_count_noun((long long)unknown, "symbol").text,
               unknown == 1 ? "is" : "are", unknown == 1 ? "is" : "are", first);
done:
    free(composed);
    return status;
}

static bm_status pack_row(packing *p, const bm_manifest_row *row)
{
    bm_excerpt part = {row->start, row->duration, row->channel};
    bm_input_frames frames = {0};
    size_t n = 0;
    bm_status status = BM_OK;

    bm_front_end_set_speaker(p->front, row->speaker_number);
    status = bm_front_end_file(p->front, row->path, part, &frames);
    if (status == BM_ERR_FORMAT || status == BM_ERR_MISSING) {
        if (p->unread++ < MOST_LOGGED)
            bm_log(BM_WARNING, "left out %s: %s", row->id, bm_last_message());
        return BM_OK;
    }
    BM_TRY(status);
    BM_TRY(encode(p, row, &n));
    return bm_shard_writer_add(p->writer, row->id, row->speaker, frames.x,
                               frames.n, row->has_text ? p->labels : NULL,
                               row->has_text ? n : 0);
}

bm_status bm_manifest_set_make(bm_manifest_set *s, const char *manifest,
                               const bm_recogniser *model)
{
    packing p = {.model = model, .compose = bm_vocab_is_nfc(model->vocab)};
    size_t shards = 0, rows = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_front_end_open(&p.front, model->features_text,
                                  model->features, BM_CHANNEL_AS_TRAINED));
    BM_TRY_DONE(open_manifest(&p, manifest));
    BM_TRY_DONE(normalise(&p));
    BM_TRY_DONE(bm_temporary_folder_make(s->directory, "align"));
    BM_TRY_DONE(open_writer(&p, s->directory));
    rows = bm_manifest_size(p.manifest);
    for (size_t i = 0; i < rows; i++) {
        bm_manifest_row row = bm_manifest_at(p.manifest, i);

        BM_TRY_DONE(bm_stop_request_check());
        BM_TRY_DONE(pack_row(&p, &row));
    }
    if (p.unread == rows)
        BM_FAIL_DONE(BM_ERR_FORMAT, "none of the %zu files of %s can be used",
                     rows, manifest);
    if (p.unknown > MOST_LOGGED)
        bm_log(BM_WARNING,
               "%s: %zu texts have symbols that the model's vocabulary lacks "
               "and that are not aligned; the first %d are named above",
               manifest, p.unknown, MOST_LOGGED);
    status = bm_shard_writer_finish(p.writer, &shards);
    s->unread = p.unread;
done:
    bm_shard_writer_close(p.writer);
    bm_manifest_free(p.manifest);
    bm_front_end_close(p.front);
    free(p.labels);
    return status;
}
