/* model_parts.h - internal to model.c and model_pass.c. */
#ifndef BM_MODELS_MODEL_PARTS_H
#define BM_MODELS_MODEL_PARTS_H

#include "models/model.h"

enum { BM_SCORE_FLOATS = sizeof(bm_score) / sizeof(float) };

typedef struct bm_layer_input {
    bm_extent extent; /* its frames are the model's, of input 0 the batch's */
    bm_tensor x;
    size_t writer; /* the layer of which it is y */
} bm_layer_input;

typedef struct bm_segment_name {
    char text[64];
} bm_segment_name;

struct bm_model {
    bm_backend *be; /* borrowed */
    char *net;
    const bm_loss_ops *loss;
    bm_infeasible policy;
    bool skips_long; /* sequences that bm_model_takes refuses */
    float smoothing; /* of labels, in gradients */
    bm_model_shape shape;
    bm_layer *layers;
    size_t n_layers;
    size_t n_frozen; /* leading layers without weights */
    bm_model_times spent;
    bm_params params;
    bool borrows; /* params.w is another model's */
    bm_segment *segments;
    bm_segment_name *names;
    bm_range *ranges;
    float *scores;

    /* Of the current batch. */
    bm_layer_input *inputs; /* n_layers + 1 */
    int32_t *frames;
    size_t frames_room; /* size of frames */
    float *scratch;
    size_t scratch_room; /* size of scratch, floats */
    float *gradient[2];  /* views of scratch */
    float *work;         /* view of scratch */
};

/* The input that layer k writes, and the layer that reads it. */
static inline size_t bm_model_after(const bm_model *m, size_t k)
{
    return k + 1 + m->layers[k].fused;
}

/* Input k + 1 is another name of the input of layer k's group. */
static inline bool bm_model_repeats(const bm_model *m, size_t k)
{
    bm_role role = m->layers[k].ops->role;
    return role == BM_OPENS || role == BM_SEPARATES;
}

/* Learned weights of layer k and the layers fused into it. */
size_t bm_model_learned(const bm_model *m, size_t k);

#endif
