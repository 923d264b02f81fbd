/* fuzz_vocab.c - vocabulary files; the text is also learned and encoded. */
#include "io/vocab.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* What is printed is read back the same. */
static void print(const bm_vocab *v)
{
    bm_vocab *again = NULL;
    char *text = NULL;

    FUZZ_RULE(bm_vocab_print(v, &text) == BM_OK);
    FUZZ_RULE(bm_vocab_parse(&again, text, bm_vocab_words(v)) == BM_OK);
    FUZZ_RULE(bm_vocab_equal(v, again));
    bm_vocab_free(again);
    free(text);
}

static void encode(bm_vocab *v, const char *text, bool right_to_left)
{
    size_t n = strlen(text), unknown = 0, count = 0;
    int32_t *labels = malloc((n + 1) * sizeof *labels);
    char first[64], *decoded = NULL;

    FUZZ_RULE(labels != NULL);
    bm_vocab_set_right_to_left(v, right_to_left);
    FUZZ_RULE(bm_vocab_encode(v, text, labels, &count, &unknown, first) ==
              BM_OK);
    FUZZ_RULE(count + unknown <= n);
    for (size_t i = 0; i < count; i++)
        FUZZ_RULE(labels[i] > 0 && (size_t)labels[i] < bm_vocab_size(v));
    FUZZ_RULE(bm_vocab_decode(v, labels, count, &decoded) == BM_OK);
    free(decoded);
    free(labels);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    for (int words = 0; words < 2; words++) {
        bm_vocab *v = NULL;

        if (bm_vocab_read(&v, path, words) == BM_OK) {
            print(v);
            encode(v, text, false);
            encode(v, text, true);
        }
        bm_vocab_free(v);
        FUZZ_RULE(bm_vocab_new(&v, words) == BM_OK);
        if (bm_vocab_learn(v, text) == BM_OK) {
            bm_vocab_sort(v);
            print(v);
            encode(v, text, false);
            encode(v, text, true);
        }
        bm_vocab_free(v);
    }
    free(text);
}

const fuzz_target fuzz_vocab = {"vocab", "vocab.txt", run, NULL};
