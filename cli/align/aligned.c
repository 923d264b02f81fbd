#include "cli/align/aligned.h"

#include <stdlib.h>
#include <string.h>

size_t bm_frame_output(const bm_frame_map *m, size_t frame)
{
    size_t output = frame / m->stride;

    return output < m->outputs ? output : m->outputs - 1;
}

static size_t first_frame(const bm_frame_map *m, size_t output)
{
    return output * m->stride;
}

static size_t end_frame(const bm_frame_map *m, size_t output)
{
    size_t end = (output + 1) * m->stride;

    return output + 1 == m->outputs || end > m->frames ? m->frames : end;
}

static bool is_space(const bm_vocab *vocab, int32_t class)
{
    return !bm_vocab_words(vocab) &&
           strcmp(bm_vocab_symbol(vocab, class), " ") == 0;
}

bool bm_vocab_has_words(const bm_vocab *vocab)
{
    for (size_t c = 1; c < bm_vocab_size(vocab); c++)
        if (bm_vocab_words(vocab) || is_space(vocab, (int32_t)c))
            return true;
    return false;
}

static size_t outputs_of(const bm_label_span *s)
{
    return (size_t)(s->last - s->first) + 1;
}

/* Adds the word of labels [from, to); its text is written to *end. */
static bm_status add_word(bm_aligned *a, const bm_vocab *vocab,
                          const int32_t *labels, const bm_label_span *spans,
                          size_t from, size_t to, char **end)
{
    bm_aligned_span word = {*end, a->labels[from].first, a->labels[to - 1].end,
                            0};
    size_t outputs = 0;
    char *text = NULL;

    BM_TRY(bm_vocab_decode(vocab, labels + from, to - from, &text));
    *end = stpcpy(*end, text) + 1;
    free(text);
    for (size_t i = from; i < to; i++) {
        word.log_p += spans[i].log_p * (double)outputs_of(&spans[i]);
        outputs += outputs_of(&spans[i]);
    }
    word.log_p /= (double)outputs;
    a->words[a->n_words++] = word;
    return BM_OK;
}

static bm_status find_words(bm_aligned *a, const bm_vocab *vocab,
                            const int32_t *labels, const bm_label_span *spans)
{
    char *end = a->text;

    for (size_t from = 0, to = 0; from < a->n_labels; from = to) {
        to = from + 1;
        if (is_space(vocab, labels[from]))
            continue;
        while (!bm_vocab_words(vocab) && to < a->n_labels &&
               !is_space(vocab, labels[to]))
            to++;
        BM_TRY(add_word(a, vocab, labels, spans, from, to, &end));
    }
    return BM_OK;
}

bm_status bm_aligned_fill(bm_aligned *a, const bm_vocab *vocab,
                          const int32_t *labels, const bm_label_span *spans,
                          size_t n)
{
    size_t bytes = 1;

    for (size_t i = 0; i < n; i++)
        bytes += strlen(bm_vocab_symbol(vocab, labels[i])) + 1;
    a->labels = calloc(n + 1, sizeof *a->labels);
    a->words = calloc(n + 1, sizeof *a->words);
    a->text = malloc(bytes);
    if (a->labels == NULL || a->words == NULL || a->text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu aligned labels", n);
    a->n_labels = n;
    for (size_t i = 0; i < n; i++)
        a->labels[i] = (bm_aligned_span){
            is_space(vocab, labels[i]) ? "<space>"
                                       : bm_vocab_symbol(vocab, labels[i]),
            first_frame(&a->map, (size_t)spans[i].first),
            end_frame(&a->map, (size_t)spans[i].last), spans[i].log_p};
    a->has_words = bm_vocab_has_words(vocab);
    return a->has_words ? find_words(a, vocab, labels, spans) : BM_OK;
}

void bm_aligned_free(bm_aligned *a)
{
    free(a->labels);
    free(a->words);
    free(a->text);
    a->labels = a->words = NULL;
    a->text = NULL;
}
