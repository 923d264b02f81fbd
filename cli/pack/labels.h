/*
 * labels.h - the labels of sequences in the vocabulary of the set: of texts, or
 * of classes that the importer has.
 */
#ifndef BM_CLI_PACK_LABELS_H
#define BM_CLI_PACK_LABELS_H

#include "cli/pack/texts.h"
#include "io/import/importer.h"

/* Starts as {0}; free with bm_labels_free. */
typedef struct bm_labels {
    int32_t *x; /* [n] of the last sequence */
    size_t n, room;
    const bm_vocab *from; /* of the importer's classes, borrowed; NULL: texts */
    int32_t *to; /* their classes in the set; -1: none. NULL: the same */
    bool per_frame;
    size_t *uses; /* [uses_room] of each class in all sequences */
    size_t uses_room;
    size_t symbols; /* of all sequences, known or not */
    /* Symbols outside the vocabulary, sequences with some, and examples. */
    size_t unknown, with_unknown;
    char examples[5][64]; /* [n_examples], all different */
    size_t n_examples;
} bm_labels;

/* "'a', 'b'", for a message. */
typedef struct bm_label_list {
    char text[400];
} bm_label_list;

/* Makes t's vocabulary ready: learns it of the importer's texts if it is to be
 * learned, or takes the importer's. Fails as the importer does, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_labels_open(bm_labels *l, bm_texts *t, bm_importer *i);
void bm_labels_free(bm_labels *l);

/* The labels of a sequence to l->x. Fails with BM_ERR_FORMAT if a class of a
 * frame is not in the vocabulary or a text is not UTF-8, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_labels_make(bm_labels *l, bm_texts *t,
                                    const bm_item *item);

/* The examples of symbols outside the vocabulary. */
bm_label_list bm_labels_unknown(const bm_labels *l);

/* Logs symbols of a vocabulary that was made of the texts which one cannot see,
 * or which only texts that were left out have. */
void bm_labels_warn(const bm_labels *l, const bm_texts *t);

/* Fails with BM_ERR_FORMAT if more than `most` percent of the symbols were outside
 * the vocabulary. */
BM_CHECKED bm_status bm_labels_check(const bm_labels *l, const bm_texts *t,
                                     double most);

#endif
