#include "recognise/front_end.h"

#include "core/file/file_kind.h"
#include "io/features/recording_features.h"
#include "io/import/files/feature_files.h"
#include "io/import/images/image_file.h"
#include "io/import/images/image_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_front_end {
    bm_input_kind kind;
    char *made; /* kind of features that only bmuf pack makes, "idx"; or NULL */
    size_t features;
    bm_config *config; /* owns texts of the settings */
    bm_recording_settings recording;
    bm_image_settings image;
    bm_feature_file_settings file;
    bm_image_plan plan;               /* of images */
    bm_recording_bank *bank;          /* of recordings */
    bm_chain *chain;                  /* NULL: images */
    const bm_chain_settings *chained; /* its settings, and */
    size_t dim;                       /* features before it */
    const char *normalise;            /* how the model's were normalised */
    size_t speaker;                   /* of the next input */
    bool learning;                    /* inputs are for bm_chain_learn */
    bm_cmvn norm;
    bm_sound sound;
    bm_frames frames;
};

/* ---- opening ------------------------------------------------------------- */

/* Without other recordings of a speaker the recording stands for all. */
static bm_status open_chain(bm_front_end *f, bm_chain_settings *s, size_t dim,
                            const char *description)
{
    f->chained = s;
    f->dim = dim;
    f->normalise = s->normalise;
    if (strcmp(s->normalise, "speaker") == 0 ||
        strcmp(s->normalise, "kaldi") == 0)
        s->normalise = "utterance";
    BM_TRY(bm_chain_new(&f->chain, s, "features", dim, 1));
    BM_TRY(bm_cmvn_read(&f->norm, description));
    BM_TRY(bm_chain_give(f->chain, "features", &f->norm));
    if (bm_chain_learns(f->chain)) { /* an old file, without the means */
        f->kind = BM_PACKED_ONLY;
        return BM_OK;
    }
    if (bm_chain_features(f->chain) != f->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model takes %zu features per frame, but its "
                       "settings make %zu",
                       f->features, bm_chain_features(f->chain));
    return BM_OK;
}

static bm_status open_recordings(bm_front_end *f, const char *description,
                                 long channel)
{
    bm_recording_settings *s = &f->recording;

    f->kind = BM_RECORDINGS;
    BM_TRY(
        bm_features_settings(description, bm_recording_options, &f->config, s));
    if (s->rate < 1)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model does not say at which rate its recordings "
                       "were sampled");
    if (channel != BM_CHANNEL_AS_TRAINED)
        s->channel = channel;
    BM_TRY(bm_recording_bank_new(&f->bank, s));
    return open_chain(f, &s->chain, bm_recording_columns(s), description);
}

static bm_status open_images(bm_front_end *f, const char *description)
{
    const bm_image_settings *s = &f->image;

    f->kind = BM_IMAGES;
    BM_TRY(bm_features_settings(description, bm_image_options, &f->config,
                                &f->image));
    f->plan = bm_image_plan_of(s);
    if ((size_t)s->height * (size_t)s->columns != f->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model takes %zu features per frame, but its "
                       "settings make %ld x %ld pixels",
                       f->features, s->columns, s->height);
    return BM_OK;
}

static bm_status open_files(bm_front_end *f, const char *description)
{
    bm_feature_file_settings *s = &f->file;

    f->kind = BM_FEATURE_FILES;
    BM_TRY(bm_features_settings(description, bm_feature_file_options,
                                &f->config, s));
    return open_chain(f, &s->chain, (size_t)s->dim, description);
}

static bm_status open_kind(bm_front_end *f, const char *description,
                           long channel)
{
    char *kind = NULL;
    bm_status status = BM_OK;

    f->kind = BM_PACKED_ONLY;
    BM_TRY(bm_features_kind(description, &kind));
    if (kind == NULL)
        return BM_OK;
    if (strcmp(kind, "audio") == 0)
        status = open_recordings(f, description, channel);
    else if (strcmp(kind, "images") == 0)
        status = open_images(f, description);
    else if (strcmp(kind, "features") == 0)
        status = open_files(f, description);
    else
        f->made = kind;
    if (f->made == NULL)
        free(kind);
    if (status == BM_ERR_CONFIG) /* the file's fault, not the user's */
        return BM_FAIL(BM_ERR_FORMAT, "the features of the model: %s",
                       bm_last_message());
    return status;
}

bm_status bm_front_end_open(bm_front_end **out, const char *description,
                            size_t features, long channel)
{
    bm_front_end *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for features");
    f->features = features;
    status = open_kind(f, description, channel);
    if (status == BM_OK)
        *out = f;
    else
        bm_front_end_close(f);
    return status;
}

void bm_front_end_close(bm_front_end *f)
{
    if (f == NULL)
        return;
    bm_chain_free(f->chain);
    bm_cmvn_free(&f->norm);
    bm_recording_bank_free(f->bank);
    bm_sound_free(&f->sound);
    bm_frames_free(&f->frames);
    bm_config_free(f->config);
    free(f->made);
    free(f);
}

bm_input_kind bm_front_end_kind(const bm_front_end *f)
{
    return f->kind;
}

long bm_front_end_rate(const bm_front_end *f)
{
    return f->kind == BM_RECORDINGS ? f->recording.rate : 0;
}

size_t bm_front_end_height(const bm_front_end *f)
{
    return f->kind == BM_IMAGES ? (size_t)f->image.height : 0;
}

double bm_front_end_shift(const bm_front_end *f)
{
    switch (f->kind) {
    case BM_RECORDINGS:
        return bm_recording_shift(&f->recording);
    case BM_FEATURE_FILES:
        return f->file.shift_ms / 1000 * (double)f->file.chain.subsample;
    case BM_IMAGES:
    case BM_PACKED_ONLY:
        break;
    }
    return 0;
}

/* ---- speakers ------------------------------------------------------------ */

const char *bm_front_end_normalise(const bm_front_end *f)
{
    return f->normalise != NULL ? f->normalise : "none";
}

bm_status bm_front_end_speakers(bm_front_end *f, size_t n)
{
    bm_chain_settings s = *f->chained;

    s.normalise = "speaker";
    bm_chain_free(f->chain);
    f->chain = NULL;
    return bm_chain_new(&f->chain, &s, "features", f->dim, n);
}

bm_status bm_front_end_learn(bm_front_end *f, size_t speaker, const char *path,
                             bm_excerpt part)
{
    bm_input_frames none = {0};
    bm_status status = BM_OK;

    f->speaker = speaker;
    f->learning = true;
    status = bm_front_end_file(f, path, part, &none);
    f->learning = false;
    return status;
}

void bm_front_end_set_speaker(bm_front_end *f, size_t speaker)
{
    f->speaker = speaker;
}

/* ---- inputs -------------------------------------------------------------- */

const char *bm_input_noun(bm_input_kind kind)
{
    switch (kind) {
    case BM_RECORDINGS:
        return "recordings";
    case BM_IMAGES:
        return "line images";
    case BM_FEATURE_FILES:
        return "feature files";
    case BM_PACKED_ONLY:
        break;
    }
    return "packed sets";
}

static bm_status check_kind(const bm_front_end *f, bm_input_kind kind)
{
    if (f->kind == kind)
        return BM_OK;
    if (f->made != NULL)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "the model was trained on what bmuf pack --%.40s makes, "
            "and reads packed sets alone; pack the file and decode "
            "the set: bmuf pack --%.40s FILE --out DIR --vocab MODEL",
            f->made, f->made);
    if (f->kind == BM_PACKED_ONLY)
        return BM_FAIL(BM_ERR_FORMAT,
                       "the model's file does not say how its features were "
                       "made and normalised; decode a packed set");
    return BM_FAIL(BM_ERR_FORMAT, "the model was trained on %s, not on %s",
                   bm_input_noun(f->kind), bm_input_noun(kind));
}

/* f->frames -> *out */
static bm_status refine(bm_front_end *f, double length, bm_input_frames *out)
{
    const bm_frames *x = &f->frames;
    double shift = bm_front_end_shift(f);
    double step = shift > 0 ? shift : (double)f->file.chain.subsample;

    if (f->learning)
        return bm_chain_learn(f->chain, f->speaker, &f->frames);
    BM_TRY(bm_chain_apply(f->chain, f->speaker, &f->frames, &x));
    *out = (bm_input_frames){
        .x = x->x, .n = x->n, .dim = x->dim, .step = step, .length = length};
    return BM_OK;
}

/* Half the sampling rate, if the bands of the features go beyond it; else 0. */
static double empty_above(const bm_recording_settings *s, long rate)
{
    double half = (double)rate / 2, top = (double)s->rate / 2;

    top = s->high_hz > 0 ? s->high_hz : top + s->high_hz;
    return half < top ? half : 0;
}

/* f->sound -> *out */
static bm_status compute_frames(bm_front_end *f, bm_input_frames *out)
{
    const bm_recording_settings *s = &f->recording;
    bm_sound *sound = &f->sound;
    double length = (double)sound->n / (double)sound->rate;
    double empty = empty_above(s, sound->rate);
    bm_problem problem = {0};

    BM_TRY(bm_sound_resample(sound, s->rate, &problem));
    if (bm_problem_is(&problem))
        return BM_FAIL(BM_ERR_FORMAT, "%s", problem.text);
    BM_TRY(bm_recording_frames(f->bank, s, "", sound->x, sound->n, &f->frames));
    if (f->frames.n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%.3f s: shorter than one window of %g ms", length,
                       s->window_ms);
    BM_TRY(refine(f, length, out));
    out->empty_above = empty;
    return BM_OK;
}

bm_status bm_front_end_samples(bm_front_end *f, const float *x, size_t n,
                               long rate, bm_input_frames *out)
{
    bm_sound *s = &f->sound;

    BM_TRY(check_kind(f, BM_RECORDINGS));
    if (rate < 1)
        return BM_FAIL(BM_ERR_ARG, "%ld Hz is not a sampling rate", rate);
    bm_sound_free(s);
    s->x = malloc((n + 1) * sizeof *s->x);
    if (s->x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu samples", n);
    s->n = n;
    s->capacity = n + 1;
    s->rate = rate;
    s->channels = 1;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return BM_FAIL(BM_ERR_FORMAT, "sample %zu is NaN or infinite", i);
        s->x[i] = 32768 * x[i];
    }
    return compute_frames(f, out);
}

/* A file of another kind: says which. */
static bm_status fail_as(const bm_problem *problem, const char *path,
                         const char *wanted)
{
    const char *kind = bm_file_kind(path);
    bool packed = kind == bm_kind_hdf5;

    if (strncmp(problem->kind, "not a", 5) == 0 && kind != NULL &&
        kind != bm_kind_binary && strstr(kind, wanted) == NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, but the model was trained on %ss%s%s", path,
                       kind, wanted, packed ? "; " : "",
                       packed ? bm_file_kind_use(kind) : "");
    return BM_FAIL(strcmp(problem->kind, "file not found") == 0 ? BM_ERR_MISSING
                                                                : BM_ERR_FORMAT,
                   "%s", problem->text);
}

static bm_status read_sound(bm_front_end *f, const char *path, bm_excerpt part,
                            bm_input_frames *out)
{
    bm_problem problem = {0};
    bm_status status = BM_OK;

    BM_TRY(
        bm_sound_read(&f->sound, path, f->recording.channel, part, &problem));
    if (bm_problem_is(&problem))
        return fail_as(&problem, path, "recording");
    status = compute_frames(f, out);
    if (status == BM_ERR_FORMAT)
        return BM_FAIL(status, "%s: %s", path, bm_last_message());
    return status;
}

bm_status bm_front_end_image(bm_front_end *f, const bm_line_image *image,
                             bm_input_frames *out)
{
    bm_image_places places = {0};
    bm_problem problem = {0};

    BM_TRY(check_kind(f, BM_IMAGES));
    BM_TRY(bm_image_frames(&f->plan, image, &f->frames, &places, &problem));
    if (bm_problem_is(&problem))
        return BM_FAIL(BM_ERR_FORMAT, "%s", problem.text);
    *out = (bm_input_frames){.x = f->frames.x,
                             .n = f->frames.n,
                             .dim = f->frames.dim,
                             .lead = -places.start / places.step,
                             .step = places.step,
                             .length = (double)image->width,
                             .height = image->height};
    return BM_OK;
}

static bm_status read_image(bm_front_end *f, const char *path,
                            bm_input_frames *out)
{
    bm_line_image image = {0};
    bm_problem problem = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_image_file_read(&image, path, BM_MOST_LINE_PIXELS, &problem));
    if (bm_problem_is(&problem))
        return fail_as(&problem, path, "image");
    status = bm_front_end_image(f, &image, out);
    bm_line_image_free(&image);
    if (status == BM_ERR_FORMAT)
        return BM_FAIL(status, "%s: %s", path, bm_last_message());
    return status;
}

/* f->frames, as a feature file has them -> *out */
static bm_status take_features(bm_front_end *f, bm_input_frames *out)
{
    double shift = f->file.shift_ms / 1000;

    if (f->frames.dim != (size_t)f->file.dim)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%zu numbers per frame, but the model was trained on "
                       "%ld",
                       f->frames.dim, f->file.dim);
    return refine(f, (double)f->frames.n * (shift > 0 ? shift : 1), out);
}

/* By its first bytes. */
static bool is_numpy(const char *path)
{
    const char *kind = bm_file_kind(path);

    return kind == bm_kind_npy || kind == bm_kind_npz;
}

static bm_status read_features(bm_front_end *f, const char *path,
                               bm_input_frames *out)
{
    bm_problem problem = {0};
    bm_status status = BM_OK;

    BM_TRY(
        bm_feature_file_read(path, (size_t)f->file.dim, &f->frames, &problem));
    if (bm_problem_is(&problem) && strcmp(problem.kind, "not a matrix") == 0 &&
        is_numpy(path))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, whose name must end in .npy or .npz; stdin "
                       "takes none",
                       path, bm_file_kind(path));
    if (bm_problem_is(&problem))
        return fail_as(&problem, path, "feature file");
    status = take_features(f, out);
    if (status == BM_ERR_FORMAT)
        return BM_FAIL(status, "%s: %s", path, bm_last_message());
    return status;
}

bm_status bm_front_end_features(bm_front_end *f, const float *x, size_t frames,
                                size_t dim, bm_input_frames *out)
{
    BM_TRY(check_kind(f, BM_FEATURE_FILES));
    if (frames == 0 || dim == 0)
        return BM_FAIL(BM_ERR_FORMAT, "no frames");
    BM_TRY(bm_frames_shape(&f->frames, frames, dim));
    for (size_t i = 0; i < frames * dim; i++) {
        if (!isfinite(x[i]))
            return BM_FAIL(BM_ERR_FORMAT, "frame %zu is not finite", i / dim);
        f->frames.x[i] = x[i];
    }
    return take_features(f, out);
}

bm_status bm_front_end_file(bm_front_end *f, const char *path, bm_excerpt part,
                            bm_input_frames *out)
{
    if (f->kind == BM_RECORDINGS)
        return read_sound(f, path, part, out);
    if (f->kind == BM_IMAGES)
        return read_image(f, path, out);
    if (f->kind == BM_FEATURE_FILES)
        return read_features(f, path, out);
    return check_kind(f, BM_RECORDINGS);
}
