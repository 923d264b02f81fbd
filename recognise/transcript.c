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

/* The text of n labels in its order; free(*out). */
static bm_status decode(const bm_vocab *vocab, const bm_found_label *labels,
                        size_t n, char **out)
{
    int32_t *classes = malloc((n + 1) * sizeof *classes);
    bm_status status = BM_OK;

    if (classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", n);
    for (size_t i = 0; i < n; i++)
        classes[i] = labels[i].label;
    status = bm_vocab_spell(vocab, classes, n, out);
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
    bool leftward = places->step < 0;

    r->words = calloc(h->n_words + 1, sizeof *r->words);
    if (r->words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu words", h->n_words);
    for (size_t i = 0; i < h->n_words; i++) {
        const bm_found_word *w = &h->words[i];
        char *text = NULL;

        BM_TRY(word_text(h, w, vocab, language, &text));
        r->words[r->n_words++] = (bm_transcript_word){
            .text = text,
            .start = place(places, (size_t)(leftward ? w->last + 1 : w->first)),
            .end = place(places, (size_t)(leftward ? w->first : w->last + 1)),
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

/* ---- the order of the text ------------------------------------------------ */

/* A hypothesis whose labels and words are in the order of the text. */
typedef struct turned {
    bm_hypothesis h;
    bm_found_label *labels;
    bm_found_word *words;
    size_t *order; /* as of bm_vocab_order */
} turned;

static bm_status order_labels(turned *t, const bm_hypothesis *h,
                              const bm_vocab *vocab)
{
    int32_t *classes = malloc((h->n_labels + 1) * sizeof *classes);
    bm_status status = BM_OK;

    if (classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", h->n_labels);
    for (size_t i = 0; i < h->n_labels; i++)
        classes[i] = h->labels[i].label;
    status = bm_vocab_order(vocab, classes, h->n_labels, t->order);
    for (size_t i = 0; status == BM_OK && i < h->n_labels; i++)
        t->labels[i] = h->labels[t->order[i]];
    free(classes);
    return status;
}

static const bm_found_word *word_of(const bm_hypothesis *h, size_t label)
{
    for (size_t i = 0; i < h->n_words; i++)
        if (label >= h->words[i].begin && label < h->words[i].end)
            return &h->words[i];
    return NULL;
}

/* Labels [begin, end) of the text as a word, with confidence and number of the word
 * that has the label in their middle. */
static bm_found_word make_word(const turned *t, const bm_hypothesis *h,
                               size_t begin, size_t end)
{
    const bm_found_word *from = word_of(h, t->order[(begin + end) / 2]);
    bm_found_word w = {begin, end, -1, INT32_MAX, 0, 0};

    if (from != NULL) {
        w.word = from->word;
        w.confidence = from->confidence;
    }
    for (size_t i = begin; i < end; i++) {
        const bm_found_label *l = &t->labels[i];

        w.first = l->first < w.first ? l->first : w.first;
        w.last = l->last > w.last ? l->last : w.last;
    }
    return w;
}

/* Words are as many as before: between spaces, or single labels. */
static void order_words(turned *t, const bm_hypothesis *h, int32_t space)
{
    size_t n = h->n_labels, begin = 0;

    t->h.n_words = 0;
    while (begin < n) {
        size_t end = begin + 1;

        if (t->labels[begin].label == space) {
            begin++;
            continue;
        }
        while (space >= 0 && end < n && t->labels[end].label != space)
            end++;
        t->words[t->h.n_words++] = make_word(t, h, begin, end);
        begin = end;
    }
}

/* *t <- h in the order of the text; words of a lexicon without spaces stay. */
static bm_status turn(turned *t, const bm_hypothesis *h, const bm_vocab *vocab)
{
    int32_t space = bm_vocab_space(vocab);
    size_t room = h->n_labels + 1;

    *t = (turned){.h = *h};
    if (!bm_vocab_right_to_left(vocab) ||
        (space < 0 && h->n_words < h->n_labels))
        return BM_OK;
    t->labels = calloc(room, sizeof *t->labels);
    t->words = calloc(room, sizeof *t->words);
    t->order = calloc(room, sizeof *t->order);
    if (!t->labels || !t->words || !t->order)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", h->n_labels);
    BM_TRY(order_labels(t, h, vocab));
    order_words(t, h, space);
    t->h.labels = t->labels;
    t->h.words = t->words;
    return BM_OK;
}

static void free_turned(turned *t)
{
    free(t->labels);
    free(t->words);
    free(t->order);
}

/* The geometric mean of the confidences of the labels; NAN: there are no words,
 * but spaces at most. */
static double mean_confidence(const bm_hypothesis *h)
{
    double log_p = 0;

    for (size_t i = 0; i < h->n_labels; i++)
        log_p += log((double)h->labels[i].confidence);
    return h->n_words > 0 ? exp(log_p / (double)h->n_labels) : NAN;
}

static bm_status make(bm_reading *r, const bm_hypothesis *h,
                      const bm_vocab *vocab, const bm_language *language,
                      const bm_frame_places *places)
{
    bool spaced = bm_vocab_space(vocab) >= 0;
    bool listed = false; /* a word is the lexicon's */
    char *text = NULL;
    bm_status status = BM_OK;

    BM_TRY(make_words(r, h, vocab, language, places));
    BM_ASSERT(r->n_words == h->n_words);
    for (size_t i = 0; i < h->n_words; i++)
        listed = listed || h->words[i].word >= 0;
    status = listed || spaced ? join(r, &text)
                              : decode(vocab, h->labels, h->n_labels, &text);
    r->text = text;
    return status;
}

bm_status bm_reading_make(bm_reading *r, const bm_hypothesis *h,
                          const bm_vocab *vocab, const bm_language *language,
                          const bm_frame_places *places)
{
    turned t;
    bm_status status = BM_OK;

    *r = (bm_reading){.score = h->score, .confidence = mean_confidence(h)};
    status = turn(&t, h, vocab);
    if (status == BM_OK)
        status = make(r, &t.h, vocab, language, places);
    free_turned(&t);
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
