#include "recognise/transcriber.h"

#include "recognise/best_path_words.h"
#include "recognise/priors.h"
#include "recognise/recogniser.h"
#include "recognise/transcriber_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_transcriber {
    bm_recogniser own;        /* {0} in a fork */
    const bm_recogniser *net; /* own, or that of the first transcriber */
    bm_backend *be;
    bm_model *model; /* of `own`, or the fork's */
    bm_front_end *front;
    bm_transcriber_settings settings;
    char file[4096];
    int32_t space;
    float *x; /* [x_room] of the backend */
    size_t x_room;
    float *logits; /* [logits_room] */
    size_t logits_room;
    bm_best_path path;
    bm_language *language; /* of the first transcriber, as priors are; NULL:
                              none */
    float *priors;
    bm_decoder *decoder; /* NULL: the best path is enough */
};

bm_transcriber_settings bm_transcriber_defaults(void)
{
    return (bm_transcriber_settings){.n_best = 1,
                                     .prior_scale = 0.3,
                                     .blank_scale = 1,
                                     .language = bm_language_defaults()};
}

static bool has_language(const bm_language_settings *s)
{
    return s->lm != NULL || s->lexicon != NULL || s->hot_file != NULL ||
           s->n_hot_words > 0;
}

/* ---- opening ------------------------------------------------------------- */

static bm_status make(bm_transcriber **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a transcriber");
    return BM_OK;
}

/* A beam, if the settings need one. */
static bm_status open_decoder(bm_transcriber *t)
{
    const bm_transcriber_settings *s = &t->settings;
    bm_decoder_settings set =
        bm_decoder_defaults(bm_vocab_size(t->net->vocab), t->space);

    if (t->language == NULL && t->priors == NULL && s->beam <= 1 &&
        s->n_best <= 1)
        return BM_OK;
    set.log_priors = t->priors;
    set.prior_scale = s->prior_scale;
    set.nbest = s->n_best > 1 ? s->n_best : 1;
    set.language = t->language;
    if (s->beam > 0)
        set.beam = s->beam;
    return bm_decoder_new(&t->decoder, &set);
}

/* What the first transcriber and its forks have of their own. */
static bm_status open_parts(bm_transcriber *t)
{
    const bm_vocab *vocab = t->net->vocab;

    t->space = bm_vocab_space(vocab);
    BM_TRY(open_decoder(t));
    return bm_front_end_open(&t->front, t->net->features_text, t->net->features,
                             t->settings.channel);
}

static bm_status check_loss(const bm_transcriber *t)
{
    const bm_loss_ops *loss = bm_model_loss(t->model);

    if (!loss->per_frame)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s was trained with model.loss = %s: it has classes of "
                   "frames, not texts; bmuf eval --hyp writes them",
                   t->file, loss->name);
}

bm_status bm_transcriber_open(bm_transcriber **out, const char *path,
                              const bm_transcriber_settings *settings)
{
    bm_transcriber *t = NULL;
    bm_status status = BM_OK;

    BM_TRY(make(&t));
    t->settings = settings != NULL ? *settings : bm_transcriber_defaults();
    t->net = &t->own;
    BM_TRY_DONE(bm_backend_open(&t->be, "cpu", 0));
    BM_TRY_DONE(bm_recogniser_find(path, t->file, sizeof t->file));
    BM_TRY_DONE(bm_recogniser_read(&t->own, t->be, t->file, 1));
    t->model = t->own.model;
    BM_TRY_DONE(check_loss(t));
    if (has_language(&t->settings.language))
        BM_TRY_DONE(bm_language_open(&t->language, &t->settings.language,
                                     t->net->vocab));
    if (t->settings.priors != NULL)
        BM_TRY_DONE(bm_priors_read(&t->priors, t->settings.priors,
                                   t->net->vocab, t->settings.blank_scale));
    status = open_parts(t);
    if (status == BM_ERR_FORMAT)
        status = BM_FAIL(status, "%s: %s", t->file, bm_last_message());
done:
    if (status == BM_OK)
        *out = t;
    else
        bm_transcriber_close(t);
    return status;
}

bm_status bm_transcriber_fork(bm_transcriber **out, const bm_transcriber *t)
{
    bm_model_shape shape = {.n_features = t->net->features,
                            .n_classes = bm_vocab_size(t->net->vocab),
                            .n_scores = 1};
    bm_transcriber *fork = NULL;
    bm_status status = BM_OK;

    BM_TRY(make(&fork));
    fork->net = t->net;
    fork->settings = t->settings;
    fork->language = t->language;
    fork->priors = t->priors;
    memcpy(fork->file, t->file, sizeof fork->file);
    BM_TRY_DONE(bm_backend_open(&fork->be, "cpu", 0));
    BM_TRY_DONE(
        bm_model_plan(&fork->model, &t->net->settings, &shape, fork->be));
    bm_model_borrow(fork->model, t->net->model);
    bm_hold(fork->be, bm_model_params(fork->model)->w,
            bm_model_params(fork->model)->n, t->net->in_bytes);
    status = open_parts(fork);
done:
    if (status == BM_OK)
        *out = fork;
    else
        bm_transcriber_close(fork);
    return status;
}

void bm_transcriber_close(bm_transcriber *t)
{
    if (t == NULL)
        return;
    if (t->x != NULL)
        bm_free(t->be, t->x);
    bm_decoder_free(t->decoder);
    if (t->net == &t->own) {
        bm_language_close(t->language);
        free(t->priors);
        bm_recogniser_close(&t->own);
    } else {
        bm_model_free(t->model);
    }
    bm_backend_close(t->be);
    bm_front_end_close(t->front);
    bm_best_path_free(&t->path);
    free(t->logits);
    free(t);
}

bm_transcriber_about bm_transcriber_describe(const bm_transcriber *t)
{
    return (bm_transcriber_about){
        .file = t->file,
        .kind = bm_front_end_kind(t->front),
        .rate = bm_front_end_rate(t->front),
        .height = bm_front_end_height(t->front),
        .features = t->net->features,
        .frame_shift = bm_front_end_shift(t->front),
    };
}

bm_status bm_transcriber_reads(const bm_transcriber *t, bm_dataset *data)
{
    return bm_recogniser_reads(t->net, data, false);
}

/* ---- the network --------------------------------------------------------- */

/* t->x <- the frames */
static bm_status send(bm_transcriber *t, const bm_input_frames *f)
{
    size_t n = f->n * f->dim;

    if (n > t->x_room) {
        bm_free(t->be, t->x);
        t->x = NULL;
        t->x_room = 0;
        BM_TRY(bm_alloc(t->be, n, &t->x));
        t->x_room = n;
    }
    bm_put(t->be, t->x, f->x, n);
    return BM_OK;
}

/* t->logits [*n, *classes] <- the network's output. */
static bm_status compute(bm_transcriber *t, const bm_input_frames *f, size_t *n,
                         size_t *classes)
{
    int32_t frames = (int32_t)f->n;
    bm_batch batch = {.extent = {f->n, 1, &frames},
                      .x = {NULL, 3, {f->n, 1, f->dim, 1}}};
    bm_extent extent = {0};
    bm_tensor y;

    BM_TRY(send(t, f));
    batch.x.data = t->x;
    bm_model_forward(t->model, &batch);
    BM_TRY(bm_sync(t->be));
    y = bm_model_output(t->model, &extent);
    *n = (size_t)extent.frames[0];
    *classes = y.dim[2];
    if (bm_count(y) > t->logits_room) {
        float *grown = realloc(t->logits, bm_count(y) * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames of logits",
                           *n);
        t->logits = grown;
        t->logits_room = bm_count(y);
    }
    bm_get(t->be, t->logits, y.data, *n * *classes);
    return bm_sync(t->be);
}

static bm_status check_finite(const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return BM_FAIL(BM_ERR_FORMAT,
                           "the network's outputs are not finite; are the "
                           "features made as the model's were?");
    return BM_OK;
}

/* ---- words --------------------------------------------------------------- */

/* `found` is borrowed until the next call. */
static bm_status search(bm_transcriber *t, size_t frames, size_t classes,
                        bm_hypothesis *path, bm_hypotheses *found)
{
    bm_log_posteriors(t->logits, frames, classes, classes, t->logits);
    if (t->decoder != NULL)
        return bm_decoder_run(t->decoder, t->logits, frames, found);
    BM_TRY(bm_best_path_words(&t->path, t->logits, frames, classes, t->space,
                              path));
    *found = (bm_hypotheses){1, path};
    return BM_OK;
}

static bm_status write_readings(bm_transcriber *t, const bm_input_frames *f,
                                size_t frames, size_t classes,
                                bm_transcript *text)
{
    double step = f->step * (double)bm_model_stride(t->model);
    const bm_frame_places places = {-f->lead * f->step, step, f->length};
    bm_hypothesis path = {0};
    bm_hypotheses found = {0};

    BM_TRY(search(t, frames, classes, &path, &found));
    if (found.n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "no text has a probability above 0");
    text->readings = calloc(found.n, sizeof *text->readings);
    if (text->readings == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a transcript");
    for (size_t i = 0; i < found.n; i++)
        BM_TRY(bm_reading_make(&text->readings[text->n++], &found.best[i],
                               t->net->vocab, t->language, &places));
    return BM_OK;
}

bm_status bm_transcriber_frames(bm_transcriber *t, const bm_input_frames *f,
                                bm_transcript **out)
{
    size_t frames = 0, classes = 0;
    bm_transcript *text = NULL;
    bm_status status = BM_OK;

    if (f->dim != t->net->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%zu features per frame, but the model takes %zu",
                       f->dim, t->net->features);
    if (f->n > INT32_MAX)
        return BM_FAIL(BM_ERR_FORMAT, "%zu frames are too many", f->n);
    if (!bm_model_takes(t->model, f->n))
        return BM_FAIL(BM_ERR_FORMAT,
                       "too long for the model's attention; give excerpts "
                       "(start, duration)");
    BM_TRY(compute(t, f, &frames, &classes));
    BM_TRY(check_finite(t->logits, frames * classes));
    text = calloc(1, sizeof *text);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a transcript");
    text->length = f->length;
    text->height = f->height;
    text->empty_above = f->empty_above;
    status = write_readings(t, f, frames, classes, text);
    if (status == BM_OK)
        *out = text;
    else
        bm_transcript_free(text);
    return status;
}

bm_status bm_transcriber_file(bm_transcriber *t, const char *path,
                              const bm_excerpt *part, bm_transcript **out)
{
    const bm_excerpt whole = {0};
    bm_input_frames frames = {0};

    BM_TRY(bm_front_end_file(t->front, path, part != NULL ? *part : whole,
                             &frames));
    return bm_transcriber_frames(t, &frames, out);
}

bm_status bm_transcriber_samples(bm_transcriber *t, const float *x, size_t n,
                                 long rate, bm_transcript **out)
{
    bm_input_frames frames = {0};

    BM_TRY(bm_front_end_samples(t->front, x, n, rate, &frames));
    return bm_transcriber_frames(t, &frames, out);
}

bm_status bm_transcriber_image(bm_transcriber *t, const unsigned char *grey,
                               size_t width, size_t height, bm_transcript **out)
{
    const bm_line_image image = {(uint8_t *)grey, width, height};
    bm_input_frames frames = {0};

    if (width == 0 || height == 0)
        return BM_FAIL(BM_ERR_ARG, "an image without pixels");
    BM_TRY(bm_front_end_image(t->front, &image, &frames));
    return bm_transcriber_frames(t, &frames, out);
}

bm_status bm_transcriber_features(bm_transcriber *t, const float *x,
                                  size_t frames, size_t dim,
                                  bm_transcript **out)
{
    bm_input_frames f = {0};

    BM_TRY(bm_front_end_features(t->front, x, frames, dim, &f));
    return bm_transcriber_frames(t, &f, out);
}
