/*
 * checkpoints.h - checkpoints of vectors whose elements a formula gives, in
 * files that all ranks know.
 */
#ifndef BM_TESTS_SUPPORT_CHECKPOINTS_H
#define BM_TESTS_SUPPORT_CHECKPOINTS_H

#include "io/model/checkpoint.h"
#include "tests/support/folder.h"

/* Vector 0 is the model, 1 Delta, then each worker's momentum, then each one's
 * counter, which is one number. */
enum { N = 70, WORKERS = 5, VECTORS = 2 + 2 * WORKERS };

/* How the vectors lie on the ranks. */
typedef enum state_layout {
    SLICES,   /* model and Delta in slices; v of the workers hosted here */
    BACKWARD, /* the same, rank r in the place of rank P - 1 - r */
    WHOLE,    /* all of everything */
    OVERLAP,  /* slices that reach into their neighbours'; v on all */
    LAYOUTS,
} state_layout;

/* Of N weights in four segments, or of n in none. */
extern const bm_segment checkpoint_segments[4];
extern const bm_text checkpoint_texts[];
bm_params network_of(size_t n);

float element_of(int vector, size_t i);

/* Zeros for part of a vector; this rank's of all of them, returns how many. */
bm_state make_part(int vector, size_t offset, size_t count);
size_t lay_out(state_layout how, bm_comm *comm, size_t n, bm_state *out);
void free_parts(bm_state *s, size_t n);

/* Where rank's slice of n elements begins. */
size_t cut_of(bm_comm *comm, int rank, size_t n);

void fill_parts(bm_state *s, size_t n);
void check_parts(const bm_state *s, size_t n);
void check_parts_are_zero(const bm_state *s, size_t n);

/* With numbers of its own for all else. */
bm_checkpoint describe_checkpoint(const bm_params *params,
                                  const bm_state *states, size_t n_states);
void save_as(state_layout how, bm_comm *comm, const char *path, size_t n);
void load_as(state_layout how, bm_comm *comm, const char *path, size_t n);

void assert_same_bytes(const char *one, const char *other);

/* Collective. A directory that all ranks know, and its end. */
scratch meet_in_scratch(void);
void leave_scratch(const scratch *s);

/* Collective. Rank 0 writes other bytes over n of a file, `at` before its end,
 * with a new seal if told to. */
void damage_sealed(const char *path, size_t at, const void *bytes, size_t n,
                   bool sealed);

#endif
