/*
 * transcriber.h - from recordings, line images and features to words, by a
 * trained model: the interface for other programs, which `bmuf decode` uses.
 *
 *     bm_transcriber *t = NULL;
 *     bm_transcript *transcript = NULL;
 *
 *     BM_TRY_DONE(bm_transcriber_open(&t, "run/1", NULL));
 *     BM_TRY_DONE(bm_transcriber_file(t, "a.wav", NULL, &transcript));
 *     puts(transcript->readings[0].text);
 *   done:
 *     bm_transcript_free(transcript);
 *     bm_transcriber_close(t);
 *
 * All that is needed comes from the model's file: network, vocabulary, how
 * features are made and normalised.
 *
 * A transcriber is for one thread at a time. Transcribers of different threads
 * are made from one by bm_transcriber_fork, and share its weights. The result
 * for an input depends on the model, the settings and the input alone, not on
 * other inputs or threads. Neither MPI nor a device is needed.
 *
 * A transcriber starts no threads. To this end opening sets OpenBLAS to one thread
 * in the whole process, and a thread that transcribes is set to one thread of
 * OpenMP.
 */
#ifndef BM_RECOGNISE_TRANSCRIBER_H
#define BM_RECOGNISE_TRANSCRIBER_H

#include "io/shard/dataset.h"
#include "models/decoding/language.h"
#include "recognise/front_end.h"

typedef struct bm_transcriber bm_transcriber;

typedef struct bm_transcriber_settings {
    size_t n_best; /* most readings of an input */
    size_t beam;   /* hypotheses of the beam search; 1: the best path; 0: that,
                      or 100 where the other settings need a search */
    long channel;  /* of recordings, from 1; 0: the mean of all */
    const char *priors; /* a packed set, usually the training set, whose labels
                           give the class priors; NULL: none */
    double prior_scale; /* log posterior - prior_scale * log prior */
    double blank_scale; /* factor of the count of blanks in the priors; > 0 */
    bm_language_settings language; /* texts are borrowed until it is open */
} bm_transcriber_settings;

/* One reading, by the best path, without a language. */
bm_transcriber_settings bm_transcriber_defaults(void);

/* A word. `start` and `end` are places: seconds of a recording, pixels of an
 * image from its left edge, or frames of features without a rate. */
typedef struct bm_transcript_word {
    const char *text;
    double start, end;
    double confidence; /* 0 to 1: best_path_words.h, or the search's */
} bm_transcript_word;

/* One way to read an input. */
typedef struct bm_reading {
    const char *text;
    double score; /* natural logarithm: of the best path's probability,
                             or the search's; larger is better */
    /* 0 to 1: the geometric mean of its labels', spaces among them; NAN: it has
     * no labels. */
    double confidence;
    bm_transcript_word *words; /* [n_words] */
    size_t n_words;
} bm_reading;

/* What was recognised. Free with bm_transcript_free; NULL is a no-op. */
typedef struct bm_transcript {
    bm_reading *readings; /* [n], the best first; n >= 1 */
    size_t n;
    double length;      /* of the input, as places */
    size_t height;      /* of an image in pixels; else 0 */
    double empty_above; /* Hz: half the sampling rate of a recording, if bands
                           of the model's features are above it; else 0 */
} bm_transcript;

/* What a transcriber reads. */
typedef struct bm_transcriber_about {
    const char *file; /* the model that was read */
    bm_input_kind kind;
    long rate;          /* of recordings, Hz; others are resampled */
    size_t height;      /* to which line images are scaled, pixels; else 0 */
    size_t features;    /* numbers per frame */
    double frame_shift; /* seconds between frames; 0: no time */
} bm_transcriber_about;

/* Opens a model, a checkpoint, or of a run its best model. `settings`: NULL: the
 * defaults. Fails with BM_ERR_MISSING, BM_ERR_IO or BM_ERR_FORMAT if there is no
 * model, or one that was not trained with CTC, and as bm_language_open and
 * bm_priors_read. */
BM_CHECKED bm_status
bm_transcriber_open(bm_transcriber **out, const char *path,
                    const bm_transcriber_settings *settings);

/* Another one for another thread, with the weights of t, which must outlive it.
 * Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_transcriber_fork(bm_transcriber **out,
                                         const bm_transcriber *t);
void bm_transcriber_close(bm_transcriber *t); /* NULL: no-op */

/* Texts are borrowed. */
bm_transcriber_about bm_transcriber_describe(const bm_transcriber *t);

/*
 * Each transcribes one input, of the kind that the model was trained on: a file,
 * or an excerpt of a recording unless `part` is NULL; x [n] of one channel, from
 * -1 to 1, at any rate; grey pixels [height, width], 0 black to 255 white; x
 * [frames, dim] as feature files have them. *out is the caller's. Fail with
 * BM_ERR_FORMAT or BM_ERR_MISSING, and the reason, if the input cannot be used,
 * with BM_ERR_IO if the disk fails, and with BM_ERR_MEMORY; the transcriber can
 * be used further.
 */
BM_CHECKED bm_status bm_transcriber_file(bm_transcriber *t, const char *path,
                                         const bm_excerpt *part,
                                         bm_transcript **out);
BM_CHECKED bm_status bm_transcriber_samples(bm_transcriber *t, const float *x,
                                            size_t n, long rate,
                                            bm_transcript **out);
BM_CHECKED bm_status bm_transcriber_image(bm_transcriber *t,
                                          const unsigned char *grey,
                                          size_t width, size_t height,
                                          bm_transcript **out);
BM_CHECKED bm_status bm_transcriber_features(bm_transcriber *t, const float *x,
                                             size_t frames, size_t dim,
                                             bm_transcript **out);

/* Fails as bm_recogniser_reads if t cannot read the frames of a packed set;
 * otherwise, from now on, the set is normalised for t when it is read. */
BM_CHECKED bm_status bm_transcriber_reads(const bm_transcriber *t,
                                          bm_dataset *data);

/* As above for frames as the network reads them, those of a packed set. */
BM_CHECKED bm_status bm_transcriber_frames(bm_transcriber *t,
                                           const bm_input_frames *frames,
                                           bm_transcript **out);

void bm_transcript_free(bm_transcript *t);

#endif
