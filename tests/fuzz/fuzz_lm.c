/*
 * fuzz_lm.c - language models: ARPA files and compact ones. What was read is
 * written and read back, and gives the same probabilities.
 */
#include "models/decoding/lm_parts.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { STEPS = 64 };

/* log10 p of a walk through the words of the model. */
static double walk(const bm_lm *lm)
{
    bm_lm_state states[2];
    uint64_t words = bm_lm_count(lm, 1);
    double sum = 0;

    bm_lm_begin(lm, &states[0]);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint32_t word = (uint32_t)(i * i * 7 / 3 % words);

        sum += bm_lm_score(lm, &states[i % 2], word, &states[1 - i % 2]);
        FUZZ_RULE(states[1 - i % 2].n < BM_LM_MOST);
    }
    return sum;
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    const char *compact = fuzz_path("again.lm");
    bm_lm *lm = NULL, *again = NULL;
    double sum = 0, other = 0;

    (void)data;
    (void)size;
    if (bm_lm_open(&lm, path) != BM_OK)
        return;
    FUZZ_RULE(bm_lm_order(lm) >= 1 && bm_lm_order(lm) <= BM_LM_MOST);
    for (uint64_t i = 0; i < bm_lm_count(lm, 1) && i < STEPS; i++) {
        uint32_t found = bm_lm_find(lm, bm_lm_word(lm, (uint32_t)i));

        FUZZ_RULE(found < bm_lm_count(lm, 1));
    }
    FUZZ_RULE(bm_lm_write(lm, compact) == BM_OK);
    FUZZ_RULE(bm_lm_open(&again, compact) == BM_OK);
    sum = walk(lm);
    other = walk(again);
    FUZZ_RULE(sum == other || (isnan(sum) && isnan(other)));
    bm_lm_close(again);
    bm_lm_close(lm);
}

/* The size and the checksum of a compact file. */
static size_t repair(uint8_t *data, size_t size, size_t room)
{
    bm_lm_header header;

    (void)room;
    if (size < sizeof header || memcmp(data, "bmuf-lm\n", 8) != 0)
        return size;
    memcpy(&header, data, sizeof header);
    header.bytes = size;
    memcpy(data, &header, sizeof header);
    header.checksum = bm_lm_checksum(data, size);
    memcpy(data, &header, sizeof header);
    return size;
}

const fuzz_target fuzz_lm = {"lm", "model.arpa", run, repair};
