/*
 * support_ctc.h - for tests of losses: batches on a backend, and two references
 * of CTC in double: by its recursion, and by enumeration of all paths.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_SUPPORT_CTC_H
#define BM_TESTS_SUPPORT_REFERENCE_SUPPORT_CTC_H

#include "compute/backend.h"
#include "tests/support/support.h"

#include <jansson.h>

enum { SEQUENCES = 16 }; /* of a batch, at most */

/* On the host. Padding of y and all of dy start as NaN. */
typedef struct batch {
    size_t T, B, C;
    int32_t frames[SEQUENCES], count[SEQUENCES];
    int32_t *classes;
    size_t n_classes; /* so far */
    float *y, *dy;    /* [T, B, C] */
    bm_score score;
} batch;

/* "cpu" and fp32 unless main sets them. loss_open opens the backend once; it is
 * closed by loss_close. */
extern const char *loss_backend;
extern bm_precision loss_precision;
bm_backend *loss_open(void);
void loss_close(void);

batch batch_new(size_t T, size_t B, size_t C);
void batch_free(batch *b);

/* Sets sequence n, in order from 0. logits [frames, C]. */
void batch_put(batch *b, size_t n, size_t frames, const float *logits,
               const int32_t *labels, size_t n_labels);

/* Frame t of sequence n in y or dy of a batch. */
float *batch_row(const batch *b, float *x, size_t n, size_t t);

/* Runs the loss: fills dy and score. Also runs it without a gradient and
 * asserts that the score is the same. */
void batch_run(batch *b, const char *loss, bm_infeasible policy);

/* CTC of one sequence; dy [T, C] unless NULL. */
bm_score ctc_alone(size_t T, size_t C, const float *y, const int32_t *labels,
                   size_t L, float *dy);

/* References in double; return the loss. */
double ctc_reference(size_t T, size_t C, const float *y, const int32_t *labels,
                     size_t L, double *dy);
double ctc_enumeration(size_t T, size_t C, const float *y,
                       const int32_t *labels, size_t L, double *dy);

void log_softmax(size_t C, const float *x, double *out);

/* Maximum norm of x - y; fails if x has a NaN. */
double distance(size_t n, const float *x, const double *y);

/* Number `key` of a stream of integers in 0 .. n - 1 and of normal numbers; n
 * normal numbers times `scale`. */
size_t pick(uint64_t key, size_t n);
double normal(uint64_t key);
float *normals(uint64_t key, size_t n, double scale); /* free() it */

/* BMUF_DATA/../reference/known_answers/ctc_kat.json; json_decref. NULL: it is
 * missing, which is printed. */
json_t *known_answers(void);

#endif
