#include "recognise/recogniser.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/file/search_folder.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"
#include "io/features/feature_text.h"
#include "io/model/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static bm_status plan(bm_recogniser *r, int n_scores)
{
    bm_model_shape shape = {.n_features = r->features,
                            .n_classes = bm_vocab_size(r->vocab),
                            .n_scores = n_scores};

    return bm_model_plan(&r->model, &r->settings, &shape, r->be);
}

static bm_status copy_vocab(bm_recogniser *r, const bm_vocab *from)
{
    BM_TRY(bm_vocab_print(from, &r->symbols));
    return bm_vocab_copy(&r->vocab, from);
}

static void set_features(bm_recogniser *r, size_t features)
{
    r->features = features;
    snprintf(r->width, sizeof r->width, "%zu", features);
}

/* The loss needs labels of frames, or of whole sequences. trained: it is not to
 * be changed any more. */
static bm_status check_labels(const bm_recogniser *r, const bm_dataset *data,
                              bool trained)
{
    bool per_frame = bm_shard_per_frame(data->shards[0]);
    const char *is = per_frame ? "frames" : "whole sequences";
    const char *needed = per_frame ? "whole sequences" : "frames";
    const char *loss = bm_model_loss(r->model)->name;
    const char *other = per_frame ? "cross_entropy" : "ctc";

    if (per_frame == bm_model_loss(r->model)->per_frame)
        return BM_OK;
    if (trained)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has labels for %s, but %s was trained with "
                       "model.loss = %s, which needs them for %s; give a set "
                       "with such labels, or a model trained with %s",
                       data->directory, is, r->called, loss, needed, other);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has labels for %s, but model.loss = %s needs them for "
                   "%s; use %s",
                   data->directory, is, loss, needed, other);
}

bm_status bm_recogniser_plan(bm_recogniser *r, bm_backend *be,
                             const bm_model_settings *settings,
                             const bm_dataset *data, int n_scores)
{
    bm_status status = BM_OK;

    memset(r, 0, sizeof *r);
    r->be = be;
    r->settings = *settings;
    set_features(r, data->features);
    snprintf(r->called, sizeof r->called, "data.train (%.250s)",
             data->directory);
    snprintf(r->train_set, sizeof r->train_set, "%s", data->directory);
    r->features_text = strdup(bm_shard_features_text(data->shards[0]));
    if (r->features_text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a recogniser");
    status = copy_vocab(r, bm_dataset_vocab(data));
    if (status == BM_OK)
        status = plan(r, n_scores);
    if (status == BM_OK)
        status = check_labels(r, data, false);
    if (status != BM_OK)
        bm_recogniser_close(r);
    return status;
}

/* What is known not to be a model; NULL: it may be one. */
static const char *other_kind(const char *path)
{
    const char *kind = bm_file_kind(path);

    if (bm_ends_with(path, ".onnx")) /* which has no first bytes of its own */
        return "an ONNX file for other programs";
    if (kind == NULL)
        return bm_text_kind(path);
    return kind == bm_kind_binary || kind == bm_kind_safetensors ? NULL : kind;
}

/* A folder without a model. */
static bm_status no_model(const char *path, const char *const names[2])
{
    char shards[PATH_MAX];

    BM_TRY(bm_search_folder_refuse(path));
    if ((size_t)snprintf(shards, sizeof shards, "%s/vocab.txt", path) <
            sizeof shards &&
        access(shards, F_OK) == 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s is a packed set, not a model; the model or run comes "
            "first",
            path);
    return BM_FAIL(BM_ERR_MISSING,
                   "%s has neither %s nor %s: it is not a run, or has no model "
                   "yet; give a run, or one of its checkpoints",
                   path, names[0], names[1]);
}

bm_status bm_recogniser_find(const char *path, char *out, size_t room)
{
    static const char *const names[] = {"model-best.safetensors",
                                        "model.safetensors"};
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    snprintf(out, room, "%s", path);
    if (!bm_is_folder(path)) {
        const char *kind = other_kind(path);

        if (kind != NULL)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s is %s, not a model; the model or run comes "
                           "first",
                           path, kind);
        return BM_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(out, room, "%.*s/%s", (int)n, path, names[i]);
        if (access(out, F_OK) == 0)
            return BM_OK;
    }
    return no_model(path, names);
}

static bm_status read_width(bm_recogniser *r, const bm_st_file *f,
                            const char *path)
{
    enum { MOST = 1 << 20 };
    char *text = NULL, *end = NULL;
    unsigned long long width = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_model_text(f, path, "features", &text));
    width = strtoull(text, &end, 10);
    if (*end != '\0' || width < 1 || width > MOST)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s: '%.20s' is not a valid number of features", path,
                         text);
    else
        set_features(r, width);
    free(text);
    return status;
}

static bm_status read_texts(bm_recogniser *r, const bm_st_file *f,
                            const char *path)
{
    static const char *const keys[] = {"net", "loss", "infeasible"};
    const char **fields[] = {&r->settings.net, &r->settings.loss,
                             &r->settings.infeasible};
    char *units = NULL;
    bm_status status = BM_OK;

    for (size_t i = 0; i < 3; i++) {
        BM_TRY_DONE(bm_model_text(f, path, keys[i], &r->texts[i]));
        *fields[i] = r->texts[i];
    }
    BM_TRY_DONE(read_width(r, f, path));
    BM_TRY_DONE(bm_model_text(f, path, "feature_settings", &r->features_text));
    BM_TRY_DONE(bm_model_text(f, path, "vocabulary", &r->symbols));
    BM_TRY_DONE(bm_model_text(f, path, "units", &units));
    BM_TRY_DONE(
        bm_vocab_parse(&r->vocab, r->symbols, strcmp(units, "words") == 0));
    bm_vocab_set_right_to_left(r->vocab,
                               bm_features_right_to_left(r->features_text));
done:
    free(units);
    return status;
}

/* Of models that this program wrote. A checkpoint has a checksum of its own. */
static bm_status check_digest(const bm_st_file *f, const char *path,
                              const float *model, size_t n)
{
    const char *digest = bm_st_text(f, "digest");
    char found[BM_WEIGHTS_DIGEST];

    if (digest == NULL)
        return BM_OK;
    bm_weights_digest(model, n, found);
    if (strcmp(found, digest) != 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is damaged: its weights have the digest %s, its "
                       "header says %.40s; copy it again, give a checkpoint of "
                       "its run, or train again. If another program changed "
                       "the weights, let it remove \"digest\" from "
                       "__metadata__",
                       path, found, digest);
    return BM_OK;
}

/* The tensors of the file, which exist, say how much memory a network may
 * take. */
static bm_status read_weights(bm_recogniser *r, bm_st_file *f, const char *path,
                              bool checkpoint)
{
    bm_params *params = bm_model_params(r->model);
    float *model = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_model_check_tensors(f, path, checkpoint, params));
    BM_TRY(bm_model_draw(r->model, 0));
    model = malloc((params->n + 1) * sizeof *model);
    if (model == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", params->n);
    status = bm_model_load(f, checkpoint, params, model);
    if (status == BM_OK && !checkpoint)
        status = check_digest(f, path, model, params->n);
    if (status == BM_OK) {
        bm_put(r->be, params->w, model, params->n);
        status = bm_sync(r->be);
        r->in_bytes = bm_model_in_bytes(f);
        bm_hold(r->be, params->w, params->n, r->in_bytes);
    }
    free(model);
    return status;
}

bm_status bm_recogniser_read(bm_recogniser *r, bm_backend *be, const char *path,
                             int n_scores)
{
    bm_st_file *f = NULL;
    bool checkpoint = false;
    bm_status status = BM_OK;

    memset(r, 0, sizeof *r);
    r->be = be;
    snprintf(r->called, sizeof r->called, "the model %.280s", path);
    snprintf(r->train_set, sizeof r->train_set, "TRAINING-DATA");
    BM_TRY_DONE(bm_model_open(&f, path, &checkpoint));
    BM_TRY_DONE(read_texts(r, f, path));
    status = plan(r, n_scores);
    if (status == BM_ERR_CONFIG) /* the file's fault, not the user's */
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: %s", path, bm_last_message());
    BM_TRY_DONE(status);
    BM_TRY_DONE(read_weights(r, f, path, checkpoint));
done:
    bm_st_free(f);
    if (status != BM_OK)
        bm_recogniser_close(r);
    return status;
}

void bm_recogniser_close(bm_recogniser *r)
{
    bm_model_free(r->model);
    bm_vocab_free(r->vocab);
    free(r->features_text);
    free(r->symbols);
    for (size_t i = 0; i < 3; i++)
        free(r->texts[i]);
    memset(r, 0, sizeof *r);
}

/* ---- whether a set fits -------------------------------------------------- */

/* What a set has features of, by the kind in their description. */
static const char *noun_of(const char *kind)
{
    return strcmp(kind, "audio") == 0    ? "recordings"
           : strcmp(kind, "unipen") == 0 ? "paths of a pen"
                                         : kind;
}

/* Fails if both descriptions name their kinds, and these differ. */
static bm_status check_kind(const char *called, const char *model,
                            const bm_dataset *data)
{
    char *was = NULL, *is = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_features_kind(model, &was));
    BM_TRY_DONE(bm_features_kind(bm_shard_features_text(data->shards[0]), &is));
    if (was != NULL && is != NULL && strcmp(was, is) != 0)
        status = BM_FAIL(BM_ERR_FORMAT, "%s has %s, %s was trained on %s",
                         data->directory, noun_of(is), called, noun_of(was));
done:
    free(was);
    free(is);
    return status;
}

/* What makes features, and whose: of a model or of a training set. */
typedef struct wanted_features {
    const char *called, *text;
    size_t width; /* of a frame; 0: any */
    const char *remedy;
} wanted_features;

/* Whether the features were made as wanted; normalises them as the training
 * set's if that alone is missing. */
static bm_status check_features(const wanted_features *w, bm_dataset *data,
                                bool force)
{
    const char *text = bm_shard_features_text(data->shards[0]);
    char list[2048], widths[80] = "";
    bool raw = false, wide = w->width != 0 && data->features != w->width;
    size_t n = bm_features_differ(w->text, text, list, sizeof list, &raw);
    bm_cmvn norm = {0};
    bm_status status = BM_OK;

    if (wide)
        snprintf(widths, sizeof widths, " (%zu in a frame, not %zu)",
                 data->features, w->width);
    if (wide || !force)
        BM_TRY(check_kind(w->called, w->text, data));
    if (wide || (n > 0 && !force))
        return BM_FAIL(BM_ERR_FORMAT, "%s has other features than %s%s%s%s\n%s",
                       data->directory, w->called, widths, n > 0 ? ":" : "",
                       list, w->remedy);
    if (!raw)
        return BM_OK;
    BM_TRY_DONE(bm_cmvn_read(&norm, w->text));
    if (norm.dim == 0 || data->features % norm.dim != 0)
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s normalises %zu features of a frame, but %s has %zu",
                     w->called, norm.dim, data->directory, data->features);
    status = bm_dataset_normalise(data, &norm);
done:
    bm_cmvn_free(&norm);
    return status;
}

bm_status bm_recogniser_reads(const bm_recogniser *r, bm_dataset *data,
                              bool force)
{
    char remedy[600];

    snprintf(remedy, sizeof remedy,
             "Pack it with the settings of the training set and with --vocab "
             "%.500s",
             bm_shell_word(r->train_set).text);
    return check_features(
        &(wanted_features){r->called, r->features_text, r->features, remedy},
        data, force);
}

/* "'a'", as in a vocabulary file; "none" after the end. */
static void quote(const bm_vocab *v, size_t k, char out[64])
{
    const char *symbol =
        k < bm_vocab_size(v) ? bm_vocab_symbol(v, (int32_t)k) : NULL;

    if (symbol == NULL)
        snprintf(out, 64, "none");
    else
        snprintf(out, 64, "'%.60s'",
                 strcmp(symbol, " ") == 0 ? "<space>" : symbol);
}

static const char *units_of(const bm_vocab *v)
{
    return bm_vocab_words(v) ? "words" : "characters";
}

static bm_status check_vocab(const bm_recogniser *r, const bm_dataset *data)
{
    const bm_vocab *theirs = bm_dataset_vocab(data);
    char is[64], was[64];
    size_t k = 0;

    if (bm_vocab_equal(r->vocab, theirs))
        return BM_OK;
    if (data->labels == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no labels, and no vocabulary for them; pack it "
                       "with --vocab %s",
                       data->directory, bm_shell_word(r->train_set).text);
    do {
        quote(theirs, k, is);
        quote(r->vocab, k, was);
    } while (strcmp(is, was) == 0 && ++k <= bm_vocab_size(theirs));
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has %zu %s, %s has %zu %s; the first that differs is %s "
                   "in place of %s; pack it with --vocab %s",
                   data->directory, bm_vocab_size(theirs), units_of(theirs),
                   r->called, bm_vocab_size(r->vocab), units_of(r->vocab), is,
                   was, bm_shell_word(r->train_set).text);
}

bm_status bm_recogniser_fits(const bm_recogniser *r, bm_dataset *data,
                             bool force)
{
    if (data->features != r->features)
        return bm_recogniser_reads(r, data, force);
    BM_TRY(check_labels(r, data, true));
    BM_TRY(check_vocab(r, data));
    return bm_recogniser_reads(r, data, force);
}

bm_status bm_recogniser_adopt_features(bm_recogniser *r, const char *from,
                                       bm_dataset *data)
{
    char *text = NULL;
    const wanted_features w = {
        .called = "the model",
        .text = from,
        .remedy = "Pack it with the model's settings; in place of "
                  "features.normalise = global set none, and it is normalised "
                  "as the model's training set was"};

    BM_TRY(check_features(&w, data, false));
    if (data->norm.dim == 0)
        return BM_OK;
    text = strdup(from);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for settings of features");
    free(r->features_text);
    r->features_text = text;
    return BM_OK;
}

bm_status bm_recogniser_scores(const bm_recogniser *r, bm_dataset *data)
{
    if (data == NULL)
        return BM_OK;
    if (data->labels == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no labels, so that no errors can be counted; "
                       "pack it with texts, or train without it",
                       data->directory);
    return bm_recogniser_fits(r, data, false);
}

void bm_recogniser_texts(const bm_recogniser *r,
                         bm_text out[BM_RECOGNISER_TEXTS])
{
    const bm_text texts[BM_RECOGNISER_TEXTS] = {
        {"net", r->settings.net},
        {"loss", r->settings.loss},
        {"infeasible", r->settings.infeasible},
        {"features", r->width},
        {"feature_settings", r->features_text},
        {"vocabulary", r->symbols},
        {"units", bm_vocab_words(r->vocab) ? "words" : "characters"},
        {0},
    };

    memcpy(out, texts, sizeof texts);
}

void bm_weights_digest(const float *w, size_t n, char out[BM_WEIGHTS_DIGEST])
{
    XXH128_hash_t sum = XXH3_128bits(w, n * sizeof *w);

    snprintf(out, BM_WEIGHTS_DIGEST, "%016llx%016llx",
             (unsigned long long)sum.high64, (unsigned long long)sum.low64);
}

/* `read`: the weights that the file gives when it is read. */
static bm_status write_model(const bm_recogniser *r, const char *path,
                             const float *model, bm_weight_type type,
                             const float *read)
{
    enum { OWN = 1 };
    const bm_params *params = bm_model_params(r->model);
    char digest[BM_WEIGHTS_DIGEST];
    bm_text texts[OWN + BM_RECOGNISER_TEXTS] = {{"digest", digest}};

    bm_weights_digest(read, params->n, digest);
    bm_recogniser_texts(r, texts + OWN);
    return bm_model_export_narrow(path, params, model, type, texts);
}

bm_status bm_recogniser_write(const bm_recogniser *r, const char *path,
                              const float *model)
{
    return write_model(r, path, model, BM_WEIGHTS_FP32, model);
}

bm_status bm_recogniser_write_narrow(const bm_recogniser *r, const char *path,
                                     const float *model, bm_weight_type type)
{
    const bm_params *params = bm_model_params(r->model);
    float *read = malloc((params->n + 1) * sizeof *read);
    bm_status status = BM_OK;

    if (read == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", params->n);
    status = bm_model_narrow(params, type, model, read);
    if (status == BM_OK)
        status = write_model(r, path, model, type, read);
    free(read);
    return status;
}
