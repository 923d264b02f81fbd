/*
 * checkpoints.h - saves and loads checkpoints of vectors with known elements,
 * in a directory that all ranks share.
 */
#ifndef BM_TESTS_SUPPORT_CHECKPOINTS_H
#define BM_TESTS_SUPPORT_CHECKPOINTS_H

#include "io/model/checkpoint.h"
#include "tests/support/folder.h"

/* Vector 0 is the model, 1 is Delta, then each worker's momentum, then each
 * worker's counter, a single number. */
enum { N = 70, WORKERS = 5, VECTORS = 2 + 2 * WORKERS };

/* The distribution of vectors over ranks. */
typedef enum state_layout {
    SLICES,   /* model and Delta in slices; v of the workers hosted here */
    BACKWARD, /* the same, with ranks in reverse order */
    WHOLE,    /* all vectors on all ranks */
    OVERLAP,  /* slices that overlap their neighbours'; v on all ranks */
    LAYOUTS,
} state_layout;

/* N weights in four segments; n other weights have none. */
extern const bm_segment checkpoint_segments[4];
extern const bm_text checkpoint_texts[];
bm_params network_of(size_t n);

float element_of(int vector, size_t i);

/* A zeroed slice of a vector; all slices of this rank, returns how many. */
bm_state make_part(int vector, size_t offset, size_t count);
size_t lay_out(state_layout how, bm_comm *comm, size_t n, bm_state *out);
void free_parts(bm_state *s, size_t n);

/* The offset of a rank's slice of n elements. */
size_t cut_of(bm_comm *comm, int rank, size_t n);

void fill_parts(bm_state *s, size_t n);
void check_parts(const bm_state *s, size_t n);
void check_parts_are_zero(const bm_state *s, size_t n);

/* A checkpoint with distinct values in all other fields. */
bm_checkpoint describe_checkpoint(const bm_params *params,
                                  const bm_state *states, size_t n_states);
void save_as(state_layout how, bm_comm *comm, const char *path, size_t n);
void load_as(state_layout how, bm_comm *comm, const char *path, size_t n);

void assert_same_bytes(const char *one, const char *other);

/* Collective. Makes and removes a directory that all ranks share. */
scratch meet_in_scratch(void);
void leave_scratch(const scratch *s);

/* Collective. Rank 0 overwrites n bytes of a file, `at` bytes before its end,
 * and recomputes the checksum if `sealed`. */
void damage_sealed(const char *path, size_t at, const void *bytes, size_t n,
                   bool sealed);

#endif
