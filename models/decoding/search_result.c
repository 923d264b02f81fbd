/*
 * search_result.c - the best hypotheses of the last frame, with times and
 * confidences. Times are those of the best path of a hypothesis (Viterbi). It can
 * be in a prefix only in frames in which the beam had this prefix: between these
 * frames alone it is looked for.
 */
#include "models/decoding/search_parts.h"

#include "core/grow.h"

#include <stdlib.h>

/* Hypotheses that are worse than the best one by more count in no confidence. */
static const double negligible = 12;

/* A hypothesis with its end: of the last frame, or several with the same text. */
typedef struct final {
    double score;
    double best;   /* score of the one whose labels it has */
    uint64_t text; /* hash */
    size_t number; /* of equal scores the smaller one is better */
    uint32_t prefix;
    int32_t word;            /* that the end completes */
    size_t n_labels, labels; /* of the result's array */
    size_t n_words, words;
} final;

struct bm_result {
    final *finals;
    size_t n_finals, room_finals;
    bm_found_label *labels;
    size_t n_labels, room_labels;
    bm_found_word *words;
    size_t n_words, room_words;
    uint32_t *chain; /* prefixes of a hypothesis, from the first label */
    size_t room_chain;
    double *rows; /* two rows of the best path */
    size_t room_rows;
    uint8_t *back; /* where the best path came from */
    size_t room_back;
    size_t *begins; /* of the rows of `back` */
    size_t room_begins;
    bm_hypothesis *best;
    size_t room_best;
};

#define RESERVE(r, array, n)                                                   \
    bm_grow(&(r)->array, n, &(r)->room_##array, sizeof *(r)->array)

bm_status bm_result_new(bm_result **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a decoder");
    return BM_OK;
}

void bm_result_free(bm_result *r)
{
    if (r == NULL)
        return;
    free(r->finals);
    free(r->labels);
    free(r->words);
    free(r->chain);
    free(r->rows);
    free(r->back);
    free(r->begins);
    free(r->best);
    free(r);
}

/* ---- ends ---------------------------------------------------------------- */

static bm_status add_final(bm_result *r, const final *f)
{
    BM_TRY(RESERVE(r, finals, r->n_finals + 1));
    r->finals[r->n_finals] = *f;
    r->finals[r->n_finals].number = r->n_finals;
    r->n_finals++;
    return BM_OK;
}

/* A hash of the labels of a prefix, without spaces at both ends, and with one
 * where there are several. */
static uint64_t hash_labels(const bm_decoder *d, uint32_t prefix)
{
    uint64_t hash = 0;
    bool gap = false; /* a space, with labels after it */

    for (uint32_t i = prefix; i != 0; i = d->prefixes[i].parent) {
        int32_t label = d->prefixes[i].label;

        if (label == d->set.space) {
            gap = hash != 0;
            continue;
        }
        if (gap)
            hash = bm_hash_more(hash, (uint64_t)d->set.space);
        hash = bm_hash_more(hash, (uint64_t)label);
        gap = false;
    }
    return hash;
}

/* The ends of a hypothesis; `incomplete`: of one that the language lets not
 * end. */
static bm_status end(bm_decoder *d, const bm_hypothesis_sum *s, bool incomplete)
{
    const bm_language *language = d->set.language;
    const bm_language_state *state = &d->states[s->prefix];
    bool words = bm_language_has_words(language);
    size_t ways = bm_language_ends(language, state, incomplete);

    for (size_t way = 0; way < ways; way++) {
        bm_language_state last;
        double score = 0;

        bm_language_end(language, state, way, &last);
        score = s->both + last.score;
        BM_TRY(add_final(
            d->result,
            &(final){.score = score,
                     .best = score,
                     .text = words ? last.text : hash_labels(d, s->prefix),
                     .prefix = s->prefix,
                     .word = last.word}));
    }
    return BM_OK;
}

static int by_text(const void *a, const void *b)
{
    const final *x = a, *y = b;

    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    if (x->best != y->best)
        return x->best > y->best ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static int by_score(const void *a, const void *b)
{
    const final *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Hypotheses with the same text become one. */
static void merge(bm_result *r)
{
    size_t n = 0;

    qsort(r->finals, r->n_finals, sizeof *r->finals, by_text);
    for (size_t i = 0; i < r->n_finals; i++) {
        if (n > 0 && r->finals[n - 1].text == r->finals[i].text)
            r->finals[n - 1].score =
                bm_log_add(r->finals[n - 1].score, r->finals[i].score);
        else
            r->finals[n++] = r->finals[i];
    }
    r->n_finals = n;
}

static bm_status find_finals(bm_decoder *d)
{
    bm_result *r = d->result;
    bool words =
        d->set.language != NULL && bm_language_has_words(d->set.language);

    r->n_finals = 0;
    for (size_t i = 0; d->set.language == NULL && i < d->n_sums; i++) {
        const bm_hypothesis_sum *s = &d->sums[i];

        BM_TRY(add_final(r, &(final){.score = s->score,
                                     .best = s->score,
                                     .text = hash_labels(d, s->prefix),
                                     .prefix = s->prefix,
                                     .word = BM_WORD_SPELLED}));
    }
    for (int incomplete = 0;
         d->set.language != NULL && r->n_finals == 0 && incomplete < 2;
         incomplete++)
        for (size_t i = 0; i < d->n_sums; i++)
            BM_TRY(end(d, &d->sums[i], incomplete));
    if (r->n_finals > 1 && (words || d->set.space >= 0))
        merge(r);
    if (r->n_finals > 1)
        qsort(r->finals, r->n_finals, sizeof *r->finals, by_score);
    return BM_OK;
}

/* ---- times --------------------------------------------------------------- */

/* r->chain <- the prefixes of a hypothesis, from the empty one. */
static bm_status trace(bm_decoder *d, uint32_t prefix, size_t *n)
{
    bm_result *r = d->result;
    size_t length = 0;

    for (uint32_t i = prefix; i != 0; i = d->prefixes[i].parent)
        length++;
    BM_TRY(RESERVE(r, chain, length + 1));
    r->chain[0] = 0;
    *n = length;
    for (uint32_t i = prefix; i != 0; i = d->prefixes[i].parent)
        r->chain[length--] = i;
    return BM_OK;
}

/* Where a path came from: bits of a byte of `back`. */
enum {
    BLANK_FROM_LABEL = 1, /* else from the blank of the same prefix */
    LABEL_FROM_BLANK = 2, /* of the parent */
    LABEL_FROM_LABEL = 4, /* of the parent */
    LABEL_FROM_OWN = 8,   /* blank of the same prefix; none: from itself */
};

/* The best paths that are in one prefix, in frames [first, last]: log p of those
 * that end in its blank and in its label. */
typedef struct row {
    int32_t first, last;
    double *blank, *label;
} row;

static double at(const row *r, const double *of, int32_t t)
{
    return t < r->first || t > r->last ? -INFINITY : of[t - r->first];
}

/* The best paths in the prefix q, from those in its parent; `again`: both have
 * the same label. Of equal paths the one that is less far is better. */
static void fill(const bm_decoder *d, uint32_t prefix, bool again,
                 const row *parent, row *out, uint8_t *back)
{
    const bm_prefix *q = &d->prefixes[prefix];
    bool spaces = bm_takes_spaces(d, prefix);
    double blank = -INFINITY, label = -INFINITY;

    for (int32_t t = q->first; t <= q->last; t++) {
        double from_label =
            again ? -INFINITY : at(parent, parent->label, t - 1);
        double from_blank = at(parent, parent->blank, t - 1);
        double best_label = label, best_blank = blank;
        uint8_t from = 0, before = 0;

        if (label >= blank) {
            from = BLANK_FROM_LABEL;
            best_blank = label;
        }
        if (spaces && blank > label) {
            before = LABEL_FROM_OWN;
            best_label = blank;
        }
        if (from_blank >= best_label) {
            before = LABEL_FROM_BLANK;
            best_label = from_blank;
        }
        if (from_label >= best_label && !again) {
            before = LABEL_FROM_LABEL;
            best_label = from_label;
        }
        blank = best_blank + bm_decoder_at(d, (size_t)t, 0);
        label = best_label + bm_decoder_at(d, (size_t)t, q->label);
        out->blank[t - q->first] = blank;
        out->label[t - q->first] = label;
        back[t - q->first] = from | before;
    }
}

/* The row of the empty prefix, which is there before frame 0. */
static void fill_empty(const bm_decoder *d, row *out)
{
    bool spaces = bm_takes_spaces(d, 0);
    double blank = 0;

    for (int32_t t = -1; t <= out->last; t++) {
        if (t >= 0 && spaces)
            blank += fmax(bm_decoder_at(d, (size_t)t, 0),
                          bm_decoder_at(d, (size_t)t, d->set.space));
        else if (t >= 0)
            blank += bm_decoder_at(d, (size_t)t, 0);
        out->blank[t + 1] = blank;
        out->label[t + 1] = -INFINITY;
    }
}

/* Makes room for the rows of n prefixes after the empty one. */
static bm_status reserve_rows(bm_decoder *d, size_t n, size_t *longest)
{
    bm_result *r = d->result;
    size_t all = 0;

    *longest = 0;
    BM_TRY(RESERVE(r, begins, n + 1));
    for (size_t k = 0; k <= n; k++) {
        const bm_prefix *q = &d->prefixes[r->chain[k]];
        size_t length = (size_t)q->last + 1 - (size_t)q->first;

        r->begins[k] = all;
        all += k > 0 ? length : 0;
        *longest = length > *longest ? length : *longest;
    }
    BM_TRY(RESERVE(r, back, all + 1));
    BM_TRY(RESERVE(r, rows, 4 * *longest));
    return BM_OK;
}

/* Goes back along the best path and notes the frames of its labels. It stays
 * within the rows: a hypothesis of the last frame has a path that was in each
 * prefix only while the beam had this, so that the best path is possible, too. */
static void go_back(const bm_decoder *d, size_t n, bool in_label,
                    bm_found_label *labels)
{
    const bm_result *r = d->result;
    size_t k = n;

    if (in_label && n > 0)
        labels[n - 1].last = (int32_t)d->frames - 1;
    for (int32_t t = (int32_t)d->frames - 1; k > 0; t--) {
        const bm_prefix *q = &d->prefixes[r->chain[k]];
        uint8_t from = 0;

        BM_ASSERT(t >= q->first && t <= q->last);
        from = r->back[r->begins[k] + (size_t)(t - q->first)];
        if (!in_label) {
            in_label = from & BLANK_FROM_LABEL;
            if (in_label && labels[k - 1].last < 0)
                labels[k - 1].last = t - 1;
            continue;
        }
        if (from & LABEL_FROM_OWN)
            in_label = false; /* several spaces; the last is noted */
        if ((from & (LABEL_FROM_BLANK | LABEL_FROM_LABEL)) == 0)
            continue;
        labels[k - 1].first = t;
        k--;
        in_label = from & LABEL_FROM_LABEL;
        if (in_label && k > 0)
            labels[k - 1].last = t - 1;
    }
}

/* The frames of the labels of a hypothesis, which has at least one. */
static bm_status find_times(bm_decoder *d, size_t n, bm_found_label *labels)
{
    bm_result *r = d->result;
    size_t longest = 0;
    row rows[2];

    BM_TRY(reserve_rows(d, n, &longest));
    for (size_t i = 0; i < 2; i++)
        rows[i] = (row){0, 0, r->rows + 2 * i * longest,
                        r->rows + (2 * i + 1) * longest};
    rows[0].first = -1;
    rows[0].last = d->prefixes[0].last;
    fill_empty(d, &rows[0]);
    for (size_t k = 1; k <= n; k++) {
        const bm_prefix *q = &d->prefixes[r->chain[k]];
        row *now = &rows[k % 2];

        now->first = q->first;
        now->last = q->last;
        fill(d, r->chain[k],
             d->prefixes[r->chain[k - 1]].label == q->label && k > 1,
             &rows[1 - k % 2], now, r->back + r->begins[k]);
        labels[k - 1].label = q->label;
        labels[k - 1].last = -1;
    }
    go_back(d, n,
            at(&rows[n % 2], rows[n % 2].label, (int32_t)d->frames - 1) >=
                at(&rows[n % 2], rows[n % 2].blank, (int32_t)d->frames - 1),
            labels);
    return BM_OK;
}

/* ---- words --------------------------------------------------------------- */

static bm_status add_word(bm_result *r, size_t begin, size_t end, int32_t word,
                          final *f)
{
    const bm_found_label *labels = r->labels + f->labels;

    if (begin == end)
        return BM_OK;
    BM_TRY(RESERVE(r, words, r->n_words + 1));
    r->words[r->n_words++] = (bm_found_word){
        begin, end, word, labels[begin].first, labels[end - 1].last, 0};
    f->n_words++;
    return BM_OK;
}

/* Does label k end a word? *word <- which. */
static bool ends_word(const bm_decoder *d, uint32_t prefix, int32_t *word)
{
    const bm_language *language = d->set.language;

    *word = BM_WORD_SPELLED;
    if (language != NULL && bm_language_has_words(language)) {
        *word = d->states[prefix].word;
        return *word != BM_WORD_OPEN ||
               d->prefixes[prefix].label == d->set.space;
    }
    return d->set.space < 0 || d->prefixes[prefix].label == d->set.space;
}

static bm_status find_words(bm_decoder *d, final *f)
{
    bm_result *r = d->result;
    size_t begin = 0;

    f->words = r->n_words;
    for (size_t k = 0; k < f->n_labels; k++) {
        int32_t word = BM_WORD_SPELLED;
        bool space = r->labels[f->labels + k].label == d->set.space;

        if (!ends_word(d, r->chain[k + 1], &word))
            continue;
        BM_TRY(add_word(r, begin, space ? k : k + 1, word, f));
        begin = k + 1;
    }
    return add_word(r, begin, f->n_labels,
                    f->word == BM_WORD_OPEN ? BM_WORD_SPELLED : f->word, f);
}

/* Labels, times and words of a hypothesis. */
static bm_status complete(bm_decoder *d, final *f)
{
    bm_result *r = d->result;

    BM_TRY(trace(d, f->prefix, &f->n_labels));
    BM_TRY(RESERVE(r, labels, r->n_labels + f->n_labels));
    f->labels = r->n_labels;
    r->n_labels += f->n_labels;
    if (f->n_labels > 0)
        BM_TRY(find_times(d, f->n_labels, r->labels + f->labels));
    return find_words(d, f);
}

/* ---- confidences --------------------------------------------------------- */

/* Frames in which the same word may be in another hypothesis: those between the
 * word before and the word after. */
typedef struct gap {
    int32_t after, before;
} gap;

static bool same_word(const bm_result *r, const final *f,
                      const bm_found_word *a, const final *g,
                      const bm_found_word *b)
{
    const bm_found_label *x = r->labels + f->labels + a->begin;
    const bm_found_label *y = r->labels + g->labels + b->begin;

    if (a->word != b->word || a->end - a->begin != b->end - b->begin)
        return false;
    for (size_t i = 0; i < a->end - a->begin; i++)
        if (x[i].label != y[i].label)
            return false;
    return true;
}

/* Adds the weight of g to the words of f that g has, too. A word of g counts for
 * one word of f: what is later in f is later in g. */
static void support_words(bm_result *r, const final *f, const final *g,
                          float weight)
{
    bm_found_word *words = r->words + f->words;
    const bm_found_word *other = r->words + g->words;
    size_t begin = 0;

    for (size_t i = 0; i < f->n_words; i++) {
        gap in = {i > 0 ? words[i - 1].last : -1,
                  i + 1 < f->n_words ? words[i + 1].first : INT32_MAX};

        while (begin < g->n_words && other[begin].last <= in.after)
            begin++;
        for (size_t j = begin; j < g->n_words && other[j].first < in.before;
             j++)
            if (same_word(r, f, &words[i], g, &other[j])) {
                words[i].confidence += weight;
                begin = j + 1;
                break;
            }
    }
}

static void support_labels(bm_result *r, const final *f, const final *g,
                           float weight)
{
    bm_found_label *labels = r->labels + f->labels;
    const bm_found_label *other = r->labels + g->labels;
    size_t begin = 0;

    for (size_t i = 0; i < f->n_labels; i++) {
        gap in = {i > 0 ? labels[i - 1].last : -1,
                  i + 1 < f->n_labels ? labels[i + 1].first : INT32_MAX};

        while (begin < g->n_labels && other[begin].last <= in.after)
            begin++;
        for (size_t j = begin; j < g->n_labels && other[j].first < in.before;
             j++)
            if (labels[i].label == other[j].label) {
                labels[i].confidence += weight;
                begin = j + 1;
                break;
            }
    }
}

static void find_confidences(bm_result *r, size_t n_best, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += exp(r->finals[i].score - r->finals[0].score);
    for (size_t i = 0; i < n_best; i++) {
        const final *f = &r->finals[i];

        for (size_t k = 0; k < f->n_labels; k++)
            r->labels[f->labels + k].confidence = 0;
        for (size_t j = 0; j < n; j++) {
            const final *g = &r->finals[j];
            float weight = (float)(exp(g->score - r->finals[0].score) / sum);

            support_words(r, f, g, weight);
            support_labels(r, f, g, weight);
        }
        for (size_t k = 0; k < f->n_labels; k++) {
            float *c = &r->labels[f->labels + k].confidence;
            *c = *c < 1 ? *c : 1;
        }
        for (size_t k = 0; k < f->n_words; k++) {
            float *c = &r->words[f->words + k].confidence;
            *c = *c < 1 ? *c : 1;
        }
    }
}

bm_status bm_result_make(bm_decoder *d, bm_hypotheses *out)
{
    bm_result *r = d->result;
    size_t n = 0, n_best = 0;

    r->n_labels = r->n_words = 0;
    BM_TRY(find_finals(d));
    while (n < r->n_finals &&
           (n < d->set.nbest ||
            r->finals[n].score >= r->finals[0].score - negligible))
        BM_TRY(complete(d, &r->finals[n++]));
    n_best = n < d->set.nbest ? n : d->set.nbest;
    find_confidences(r, n_best, n);
    BM_TRY(RESERVE(r, best, n_best + 1));
    for (size_t i = 0; i < n_best; i++) {
        const final *f = &r->finals[i];

        r->best[i] =
            (bm_hypothesis){f->score, f->n_labels, f->n_words,
                            r->labels + f->labels, r->words + f->words};
    }
    *out = (bm_hypotheses){n_best, r->best};
    return BM_OK;
}
