/*
 * inputs.h - the inputs of bmuf decode, one after the other: of files, folders,
 * lists, manifests, packed sets and stdin.
 */
#ifndef BM_CLI_DECODE_INPUTS_H
#define BM_CLI_DECODE_INPUTS_H

#include "recognise/transcriber.h"

#include <stdatomic.h>
#include <stdbool.h>

/* One input. Texts are its own; free with bm_input_free. */
typedef struct bm_input {
    char *id, *path, *speaker; /* path: "" in a packed set; speaker: "" if
                                  unknown */
    const char *shown;         /* what messages call it: path, "stdin" or id */
    const char *unit;          /* of positions: "s", "pixels", "frames" */
    bool command;              /* path is a command, which writes the input */
    bm_excerpt part;
    char *fault;            /* why it cannot be read; NULL: it can be tried */
    bm_status status;       /* of the fault */
    bool whole;             /* the whole argument is this input */
    float *x;               /* frames of a packed set; else NULL */
    bm_input_frames frames; /* of x */
} bm_input;

void bm_input_free(bm_input *input);

typedef struct bm_inputs bm_inputs;

/* The unit of positions in files that t reads. */
const char *bm_inputs_unit(const bm_transcriber *t);

/* names [n]: arguments of the program, borrowed as t is; "-" is stdin. Lists and
 * manifests may have commands in place of files if `pipes`. needed: the unit of
 * positions, without which a set has a fault; NULL: any. Fails with
 * BM_ERR_MEMORY. Close with bm_inputs_close; NULL is a no-op. */
BM_CHECKED bm_status bm_inputs_open(bm_inputs **out, const char *const *names,
                                    size_t n, bool pipes, const char *needed,
                                    const bm_transcriber *t);
void bm_inputs_close(bm_inputs *s);

/*
 * *out <- the next input; *there: there was one. What cannot be opened is an
 * input with a fault, and the next call goes on after it. Waits for stdin,
 * until *stop is true. Fails with BM_ERR_MEMORY, or with BM_ERR_CREATE or
 * BM_ERR_IO if a recording on stdin cannot be stored.
 */
BM_CHECKED bm_status bm_inputs_next(bm_inputs *s, const atomic_bool *stop,
                                    bm_input *out, bool *there);

#endif
