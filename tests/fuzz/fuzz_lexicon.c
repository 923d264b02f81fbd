/* fuzz_lexicon.c - lexicons and hot words: the input is read as both, for a
 * vocabulary of characters and for one of words. */
#include "models/decoding/language.h"
#include "models/decoding/lexicon.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Every spelling leads to its last node, and every node to its parent. */
static void check(const bm_lexicon *l)
{
    for (size_t i = 0; i < l->n_spellings; i++) {
        size_t n = bm_lexicon_spelling(l, i, NULL);
        int32_t *labels = malloc((n + 1) * sizeof *labels);
        uint32_t at = 0;

        FUZZ_RULE(labels != NULL && l->words[i] < l->n_words);
        FUZZ_RULE(bm_lexicon_spelling(l, i, labels) == n && n > 0);
        for (size_t k = 0; k < n; k++)
            at = bm_lexicon_child(l, at, labels[k]);
        FUZZ_RULE(at == l->ends[i] && i >= l->nodes[at].spelling &&
                  i < l->nodes[at].spelling + l->nodes[at].spellings);
        free(labels);
    }
    for (size_t i = 1; i < l->n_nodes; i++)
        FUZZ_RULE(l->nodes[i].parent < i);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const char *const symbols[] = {"<blank>\n<space>\na\nb\n\xc3\xa9\n",
                                          "<blank>\na\nb\nab\n"};

    (void)data;
    (void)size;
    for (int words = 0; words < 2; words++) {
        bm_language_settings set = bm_language_defaults();
        bm_language *language = NULL;
        bm_lexicon *l = NULL;
        bm_vocab *v = NULL;

        FUZZ_RULE(bm_vocab_parse(&v, symbols[words], words) == BM_OK);
        if (bm_lexicon_read(&l, path, v) == BM_OK)
            check(l);
        bm_lexicon_free(l);
        set.hot_file = path;
        if (bm_language_open(&language, &set, v) == BM_OK)
            bm_language_close(language);
        language = NULL;
        set.lexicon = path; /* which spells the hot words */
        if (bm_language_open(&language, &set, v) == BM_OK)
            bm_language_close(language);
        bm_vocab_free(v);
    }
}

const fuzz_target fuzz_lexicon = {"lexicon", "lexicon.txt", run, NULL};
