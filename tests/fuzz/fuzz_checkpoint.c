/* fuzz_checkpoint.c - checkpoints of a small network. Mutants get the right
 * checksum. */
#include "io/model/checkpoint.h"
#include "io/model/safetensors_parts.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { WEIGHTS = 6, COUNTS = 1 };

static size_t repair(uint8_t *data, size_t size, size_t room)
{
    size = fuzz_repair_header(data, size, room);
    if (size >= 8 + BM_ST_SEAL_SIZE)
        bm_st_seal(XXH3_128bits(data, size - BM_ST_SEAL_SIZE),
                   data + size - BM_ST_SEAL_SIZE);
    return size;
}

void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Not freed, and neither is what Open MPI keeps until the program ends. */
static bm_comm *open_comm(void)
{
    bm_comm *comm = NULL;

    if (__lsan_disable != NULL)
        __lsan_disable();
    FUZZ_RULE(bm_comm_open(&comm) == BM_OK);
    if (__lsan_enable != NULL)
        __lsan_enable();
    return comm;
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const bm_segment segments[] = {{"0.linear.w", 0, 4, 2, {2, 2}, 0},
                                          {"0.linear.b", 4, 2, 1, {2}, 0}};
    static bm_comm *comm;
    float model[WEIGHTS] = {0}, v[WEIGHTS] = {0}, t[COUNTS] = {0};
    bm_params params = {.n = WEIGHTS, .segments = segments, .n_segments = 2};
    bm_state states[] = {
        {.name = "model", .x = model, .count = WEIGHTS},
        {.name = "sgd.v.0", .x = v, .count = WEIGHTS},
        {.name = "adam.t.0", .x = t, .count = COUNTS, .whole = COUNTS}};
    bm_checkpoint c = {.params = &params, .states = states, .n_states = 3};

    (void)data;
    (void)size;
    if (comm == NULL)
        comm = open_comm();
    if (bm_checkpoint_load(path, comm, &c) != BM_OK)
        return;
    FUZZ_RULE(c.position.epoch >= 0 && c.position.block >= 0);
    for (size_t i = 0; i < WEIGHTS; i++)
        FUZZ_RULE(isfinite(model[i]) && isfinite(v[i]));
    for (size_t i = 0; i < BM_CHECKPOINT_NUMBERS; i++)
        FUZZ_RULE(isfinite(c.numbers[i]));
}

const fuzz_target fuzz_checkpoint = {"checkpoint", "block-00000001.safetensors",
                                     run, repair};
