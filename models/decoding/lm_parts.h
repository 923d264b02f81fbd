/*
 * lm_parts.h - the compact form of a language model, in memory and in a file: a
 * tree whose branches are n-grams from the last word to the first one. The children
 * of a node are the words that stand before it, sorted by number. Level k has the
 * n-grams of k words. All is little-endian, and every part begins at a multiple of
 * 8 bytes:
 *
 *     header | offsets [words + 1] | texts of words | levels 1 .. order
 */
#ifndef BM_MODELS_DECODING_LM_PARTS_H
#define BM_MODELS_DECODING_LM_PARTS_H

#include "models/decoding/lm.h"

typedef struct bm_lm_header {
    char magic[8];     /* "bmuf-lm\n" */
    uint32_t one;      /* 1, which tells the order of bytes */
    uint32_t version;  /* 1 */
    uint64_t bytes;    /* of the file */
    uint64_t checksum; /* XXH3 of all after the header, with XXH3 of the header,
                          whose checksum is 0, as seed */
    uint64_t counts[BM_LM_MOST]; /* of n-grams; [0]: of words */
    uint64_t text_bytes;         /* a multiple of 8 */
    uint32_t order, begin, end, unknown;
} bm_lm_header;

/* An n-gram that longer ones may contain. Its children are [first, first of the
 * next node); a level ends with a node that has only this number. */
typedef struct bm_lm_node {
    uint32_t word; /* the first one of the n-gram */
    float p, backoff;
    uint32_t first;
} bm_lm_node;

/* An n-gram of the longest kind, if that is not the unigram. */
typedef struct bm_lm_leaf {
    uint32_t word;
    float p;
} bm_lm_leaf;

struct bm_lm {
    const bm_lm_header *header;
    const uint64_t *offsets; /* [words + 1] */
    const char *texts;       /* each ends with '\0', in byte order */
    const bm_lm_node *levels[BM_LM_MOST];
    const bm_lm_leaf *leaves;
    void *memory; /* the whole; mapped or allocated */
    size_t size;
    bool mapped;
};

/* An n-gram of an ARPA file: its words, the last one first. */
typedef struct bm_lm_gram {
    uint32_t words[BM_LM_MOST]; /* zeros after the n-gram's */
    float p, backoff;
} bm_lm_gram;

/* What an ARPA file has. Words are sorted by bytes and numbered so. */
typedef struct bm_lm_source {
    int order;
    char **words;
    size_t n_words;
    bm_lm_gram *grams[BM_LM_MOST];
    size_t counts[BM_LM_MOST], room[BM_LM_MOST];
    uint32_t begin, end, unknown;
} bm_lm_source;

/* Reads an ARPA file. Fails as bm_lm_open does. Free with bm_lm_source_free. */
BM_CHECKED bm_status bm_lm_arpa_read(bm_lm_source *out, int fd,
                                     const char *path);
void bm_lm_source_free(bm_lm_source *s);

/* Appends an n-gram of k words; false: no memory. */
bool bm_lm_source_add(bm_lm_source *s, int k, const bm_lm_gram *g);

/* Makes the compact form; changes the source. Fails with BM_ERR_FORMAT if an
 * n-gram occurs twice, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_lm_build(bm_lm **out, bm_lm_source *s,
                                 const char *path);

/* Sets the pointers of lm into lm->memory. Fails with BM_ERR_FORMAT if sizes and
 * offsets do not fit. */
BM_CHECKED bm_status bm_lm_attach(bm_lm *lm, const char *path);
uint64_t bm_lm_checksum(const void *memory, size_t size);

/* Bytes of the file that a header describes; 0: more than there can be. */
uint64_t bm_lm_size(const bm_lm_header *h);

#endif
