/*
 * draws.h - what the intervals of error rates draw again: sequences, or speakers
 * with all of their sequences. For bmuf eval and compare; bmuf score, which has
 * speakers from elsewhere, uses the last two functions alone.
 *
 *     bm_draws draws = {0};
 *
 *     BM_TRY_DONE(bm_draws_open(&draws, a, data));
 *     BM_TRY_DONE(bm_draws_interval(&draws, count, &interval));
 *   done:
 *     bm_draws_free(&draws);
 */
#ifndef BM_CLI_SCORE_DRAWS_H
#define BM_CLI_SCORE_DRAWS_H

#include "cli/arguments.h"
#include "io/shard/dataset.h"
#include "models/bootstrap.h"

#include <jansson.h>

#define BM_DRAW_FLAG                                                           \
    {                                                                          \
        "draw", "sequences|speakers",                                          \
            "what the intervals draw again; default: sequences", 0, false      \
    }

typedef struct bm_draws {
    bool of_speakers;  /* --draw speakers */
    size_t n;          /* sequences */
    size_t *speaker;   /* [n]: numbers of their speakers; NULL: unknown */
    size_t n_speakers; /* 0: that of a sequence is unknown */
} bm_draws;

/* Reads --draw and the speakers of the data set. Fails with BM_ERR_ARG for
 * another word, with BM_ERR_FORMAT if speakers are to be drawn and a sequence has
 * none, and as bm_dataset_speaker. */
BM_CHECKED bm_status bm_draws_open(bm_draws *d, const bm_arguments *a,
                                   bm_dataset *data);
void bm_draws_free(bm_draws *d);

/* As bm_bootstrap and bm_bootstrap_difference; counts [n] are of sequences. */
BM_CHECKED bm_status bm_draws_interval(const bm_draws *d,
                                       const bm_error_count *count,
                                       bm_interval *out);
BM_CHECKED bm_status bm_draws_difference(const bm_draws *d,
                                         const bm_error_count *first,
                                         const bm_error_count *count,
                                         bm_interval *out);

/* "draws of 27 speakers", or "draws of sequences; --draw speakers draws the 27
 * speakers"; "" if these are unknown, or as many as sequences. */
const char *bm_draws_text(const bm_draws *d, char out[200]);

/* Adds "draw" and "speakers", null if they are unknown. */
void bm_draws_json(const bm_draws *d, json_t *o);

/* Warns if fewer than BM_GOOD_DRAWN are drawn; n: sequences with a reference. */
void bm_draws_warn(const bm_draws *d, size_t n);

/* names [n], one of each sequence -> the *unique different ones, sorted;
 * number [n] <- where each is among them. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_speakers_number(const char **names, size_t n,
                                        size_t *number, size_t *unique);

/* sum [n_speakers] <- the sums of count [n] over each speaker's sequences. */
void bm_speakers_sum(const size_t *speaker, const bm_error_count *count,
                     size_t n, bm_error_count *sum, size_t n_speakers);

#endif
