/* transcript.c - texts and words of labels that were found. */
#include "recognise/transcriber_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int32_t bm_space_class(const bm_vocab *vocab)
{
    for (size_t c = 1; c < bm_vocab_size(vocab); c++)
        if (strcmp(bm_vocab_symbol(vocab, (int32_t)c), " ") == 0)
            return (int32_t)c;
    return -1;
}

static double place(const bm_frame_places *p, size_t frame)
{
    double at = p->start + (double)frame * p->step;

    return fmin(fmax(at, 0), p->length);
}

/* *w <- the word of n > 0 labels. Its confidence is the geometric mean of
 * theirs. */
static bm_status make_word(bm_heard_word *w, const bm_found_label *labels,
                           size_t n, const bm_vocab *vocab,
                           const bm_frame_places *places)
{
    int32_t *classes = malloc(n * sizeof *classes);
    double log_p = 0;
    char *text = NULL;
    bm_status status = BM_OK;

    if (classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a word");
    for (size_t i = 0; i < n; i++) {
        classes[i] = labels[i].class;
        log_p += log(labels[i].confidence);
    }
    status = bm_vocab_decode(vocab, classes, n, &text);
    free(classes);
    *w = (bm_heard_word){.text = text,
                         .start = place(places, labels[0].first),
                         .end = place(places, labels[n - 1].last + 1),
                         .confidence = exp(log_p / (double)n)};
    return status;
}

/* The end of the word that begins at label i. */
static size_t end_of_word(const bm_found *found, size_t i, bool words,
                          int32_t space)
{
    if (words)
        return i + 1;
    while (i < found->n && found->labels[i].class != space)
        i++;
    return i;
}

static bm_status make_words(bm_reading *r, const bm_found *found,
                            const bm_vocab *vocab, int32_t space,
                            const bm_frame_places *places)
{
    bool words = bm_vocab_words(vocab);
    size_t end = 0;

    r->words = calloc(found->n + 1, sizeof *r->words);
    if (r->words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu words", found->n);
    for (size_t i = 0; i < found->n; i = end) {
        end = end_of_word(found, i, words, space);
        if (end == i) { /* a space */
            end++;
            continue;
        }
        BM_TRY(make_word(&r->words[r->n_words++], found->labels + i, end - i,
                         vocab, places));
    }
    return BM_OK;
}

bm_status bm_reading_make(bm_reading *r, const bm_found *found,
                          const bm_vocab *vocab, int32_t space,
                          const bm_frame_places *places)
{
    int32_t *classes = malloc((found->n + 1) * sizeof *classes);
    char *text = NULL;
    bm_status status = BM_OK;

    *r = (bm_reading){.score = found->score};
    if (classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", found->n);
    for (size_t i = 0; i < found->n; i++)
        classes[i] = found->labels[i].class;
    status = bm_vocab_decode(vocab, classes, found->n, &text);
    free(classes);
    r->text = text;
    if (status == BM_OK)
        status = make_words(r, found, vocab, space, places);
    return status;
}

void bm_reading_free(bm_reading *r)
{
    for (size_t i = 0; i < r->n_words; i++)
        free((char *)r->words[i].text);
    free(r->words);
    free((char *)r->text);
    *r = (bm_reading){0};
}

void bm_transcript_free(bm_transcript *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->n; i++)
        bm_reading_free(&t->readings[i]);
    free(t->readings);
    free(t);
}
