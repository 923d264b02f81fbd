/* transcript.c - texts and words of hypotheses. */
#include "recognise/transcriber_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double place(const bm_frame_places *p, size_t frame)
{
    double at = p->start + (double)frame * p->step;

    return fmin(fmax(at, 0), p->length);
}

/* The text of n labels; free(*out). */
static bm_status decode(const bm_vocab *vocab, const bm_found_label *labels,
                        size_t n, char **out)
{
    int32_t *classes = malloc((n + 1) * sizeof *classes);
    bm_status status = BM_OK;

    if (classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", n);
    for (size_t i = 0; i < n; i++)
        classes[i] = labels[i].label;
    status = bm_vocab_decode(vocab, classes, n, out);
    free(classes);
    return status;
}

/* The word as the lexicon has it, or as its labels spell it; free(*out). */
static bm_status word_text(const bm_hypothesis *h, const bm_found_word *w,
                           const bm_vocab *vocab, const bm_language *language,
                           char **out)
{
    if (w->word < 0)
        return decode(vocab, h->labels + w->begin, w->end - w->begin, out);
    *out = strdup(bm_language_word(language, w->word));
    return *out != NULL ? BM_OK
                        : BM_FAIL(BM_ERR_MEMORY, "no memory for a word");
}

static bm_status make_words(bm_reading *r, const bm_hypothesis *h,
                            const bm_vocab *vocab, const bm_language *language,
                            const bm_frame_places *places)
{
    r->words = calloc(h->n_words + 1, sizeof *r->words);
    if (r->words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu words", h->n_words);
    for (size_t i = 0; i < h->n_words; i++) {
        const bm_found_word *w = &h->words[i];
        char *text = NULL;

        BM_TRY(word_text(h, w, vocab, language, &text));
        r->words[r->n_words++] =
            (bm_heard_word){.text = text,
                            .start = place(places, (size_t)w->first),
                            .end = place(places, (size_t)w->last + 1),
                            .confidence = (double)w->confidence};
    }
    return BM_OK;
}

/* The words with blanks between them; free(*out). */
static bm_status join(const bm_reading *r, char **out)
{
    size_t n = 1;
    char *at = NULL;

    for (size_t i = 0; i < r->n_words; i++)
        n += strlen(r->words[i].text) + 1;
    at = *out = malloc(n);
    if (at == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    *at = '\0';
    for (size_t i = 0; i < r->n_words; i++)
        at += sprintf(at, "%s%s", i > 0 ? " " : "", r->words[i].text);
    return BM_OK;
}

bm_status bm_reading_make(bm_reading *r, const bm_hypothesis *h,
                          const bm_vocab *vocab, const bm_language *language,
                          const bm_frame_places *places)
{
    bool spaced = bm_vocab_space(vocab) >= 0;
    bool listed = false; /* a word is the lexicon's */
    char *text = NULL;
    bm_status status = BM_OK;

    *r = (bm_reading){.score = h->score};
    BM_TRY(make_words(r, h, vocab, language, places));
    BM_ASSERT(r->n_words == h->n_words);
    for (size_t i = 0; i < h->n_words; i++)
        listed = listed || h->words[i].word >= 0;
    status = listed || spaced ? join(r, &text)
                              : decode(vocab, h->labels, h->n_labels, &text);
    r->text = text;
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
