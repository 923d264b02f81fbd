/* plain_texts.c - scores of texts, read from their beginning. */
#include "tests/support/reference/plain_texts.h"

#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Has it a model of symbols? */
static bool of_symbols(const rig *r)
{
    return r->lm != NULL && r->n_spellings == 0;
}

static bool has_space(const rig *r)
{
    return strchr(r->labels, ' ') != NULL;
}

size_t class_of(const rig *r, char label)
{
    return (size_t)(strchr(r->labels, label) - r->labels);
}

bool merges_spaces(const rig *r, char label)
{
    return has_space(r) && !of_symbols(r) && (label == ' ' || label == '\0');
}

static bool allows_unknown(const rig *r)
{
    return r->set.unknown_score > -INFINITY;
}

static double unknown_cost(const rig *r)
{
    return allows_unknown(r) ? r->set.unknown_score : 0;
}

static bool begins(const char *text, const char *beginning, size_t n)
{
    return strncmp(text, beginning, n) == 0;
}

static bool begins_a_word(const rig *r, const char *labels)
{
    for (size_t i = 0; i < r->n_spellings; i++)
        if (begins(r->lexicon[i].labels, labels, strlen(labels)))
            return true;
    return false;
}

static bool is_word(const rig *r, const char *word)
{
    for (size_t i = 0; i < r->n_spellings; i++)
        if (strcmp(r->lexicon[i].word, word) == 0)
            return true;
    return false;
}

static double lm_score(const rig *r, bm_lm_state *state, uint32_t word)
{
    bm_lm_state before = *state;

    return r->set.lm_weight * log(10) *
           bm_lm_score(r->lm, &before, word, state);
}

static double symbol_score(const rig *r, bm_lm_state *state, char label)
{
    const char written[] = {label, '\0'};

    return r->set.word_score +
           lm_score(r, state,
                    bm_lm_find(r->lm, label == ' ' ? "<space>" : written));
}

static double word_score(const rig *r, bm_lm_state *state, const char *word)
{
    bool known = is_word(r, word);
    double score = r->set.word_score + (known ? 0 : unknown_cost(r));

    if (r->lm == NULL)
        return score;
    return score +
           lm_score(r, state,
                    known ? bm_lm_find(r->lm, word) : bm_lm_unknown(r->lm));
}

/* ---- texts --------------------------------------------------------------- */

typedef struct reading {
    char spoken[TEXT]; /* labels, with one space behind each word */
    char open[TEXT];   /* labels of the word that has not ended */
    char words[TEXT];  /* each followed by a space */
    double score;      /* of words, or of symbols */
    bm_lm_state state;
} reading;

static void put(char *text, char c)
{
    size_t n = strlen(text);

    assert_true(n + 1 < TEXT);
    text[n] = c;
    text[n + 1] = '\0';
}

static void put_gap(char *text)
{
    if (*text != '\0' && text[strlen(text) - 1] != ' ')
        put(text, ' ');
}

static void read_label(const rig *r, char label, reading *out)
{
    if (of_symbols(r))
        out->score += symbol_score(r, &out->state, label);
    if (label == ' ') {
        put_gap(out->spoken);
        return;
    }
    put(out->spoken, label);
    put(out->open, label);
    if (!has_space(r) && r->n_spellings == 0)
        put_gap(out->spoken); /* each label is a word */
}

static void read_word(const rig *r, const char *word, size_t n, reading *out)
{
    char copy[TEXT];

    snprintf(copy, sizeof copy, "%.*s", (int)n, word);
    out->score += word_score(r, &out->state, copy);
    snprintf(out->words + strlen(out->words), TEXT - strlen(out->words), "%s ",
             copy);
    out->open[0] = '\0';
    put_gap(out->spoken);
}

static void read_text(const rig *r, const char *text, reading *out)
{
    out->spoken[0] = out->open[0] = out->words[0] = '\0';
    out->score = 0;
    if (r->lm != NULL)
        bm_lm_begin(r->lm, &out->state);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '<') {
            read_label(r, *at, out);
        } else {
            size_t n = strcspn(++at, ">");

            read_word(r, at, n, out);
            at += n;
        }
    }
}

/* The word after this one, or NULL. */
static const char *next_word(const char *word)
{
    const char *space = strchr(word, ' ');

    return space != NULL && space[1] != '\0' ? space + 1 : NULL;
}

/* The boosts of all phrases in words that have ended. */
static double boosts(const rig *r, const char *spoken)
{
    double sum = 0;

    for (const char *at = spoken; at != NULL; at = next_word(at))
        for (size_t i = 0; i < r->n_hot; i++) {
            size_t n = strlen(r->hot[i].labels);

            if (begins(at, r->hot[i].labels, n) && at[n] == ' ')
                sum += r->hot[i].boost;
        }
    return sum;
}

/* Of the longest beginning of a phrase at the end: its part of the boost. */
static double part_of_boost(const rig *r, const char *spoken)
{
    for (const char *at = spoken; at != NULL; at = next_word(at)) {
        size_t n = strlen(at);
        double rate = 0;

        for (size_t i = 0; n > 0 && i < r->n_hot; i++)
            if (begins(r->hot[i].labels, at, n))
                rate = fmax(rate,
                            r->hot[i].boost / (double)strlen(r->hot[i].labels));
        if (rate > 0)
            return rate * (double)n;
    }
    return 0;
}

double language_score(const rig *r, const char *text)
{
    static reading x;
    bool outside = false;

    read_text(r, text, &x);
    outside = r->n_spellings > 0 && !begins_a_word(r, x.open);
    return x.score + (outside ? unknown_cost(r) : 0) + boosts(r, x.spoken) +
           part_of_boost(r, x.spoken);
}

double final_score(const rig *r, const char *text, char *words)
{
    static reading x;
    double end = 0;

    read_text(r, text, &x);
    put_gap(x.spoken);
    snprintf(words, TEXT, "%s", r->n_spellings > 0 ? x.words : x.spoken);
    if (r->lm != NULL)
        end = lm_score(r, &x.state, bm_lm_end(r->lm));
    return x.score + boosts(r, x.spoken) + end;
}

static void add(text_list *out, const char *text, const char *labels,
                const char *word)
{
    assert_true(out->n < 8);
    assert_true(strlen(text) + strlen(labels) + strlen(word) + 3 < TEXT);
    snprintf(out->texts[out->n++], TEXT, *word != '\0' ? "%s%s<%s>" : "%s%s%s",
             text, labels, word);
}

/* Adds the ways in which a word with this spelling ends; returns their number. */
static size_t add_words(const rig *r, const char *text, const char *labels,
                        const char *open, text_list *out)
{
    size_t before = out->n;

    for (size_t i = 0; i < r->n_spellings; i++)
        if (strcmp(r->lexicon[i].labels, open) == 0)
            add(out, text, labels, r->lexicon[i].word);
    return out->n - before;
}

/* What stands between spaces is a word. */
static void follow_between(const rig *r, const char *text, const char *label,
                           const char *open, text_list *out)
{
    char longer[TEXT];

    if (*label == ' ') {
        if (*open != '\0' && add_words(r, text, label, open, out) == 0 &&
            allows_unknown(r))
            add(out, text, label, open);
        return;
    }
    snprintf(longer, sizeof longer, "%s%s", open, label);
    if (allows_unknown(r) || begins_a_word(r, longer))
        add(out, text, label, "");
}

/* A word ends where a spelling does; a label may stand for itself. */
static void follow_along(const rig *r, const char *text, const char *label,
                         const char *open, text_list *out)
{
    char longer[TEXT];
    size_t n = 0;
    bool more = false;

    snprintf(longer, sizeof longer, "%s%s", open, label);
    n = strlen(longer);
    for (size_t i = 0; i < r->n_spellings; i++)
        more = more || (begins(r->lexicon[i].labels, longer, n) &&
                        strlen(r->lexicon[i].labels) > n);
    n = add_words(r, text, label, longer, out);
    if (more)
        add(out, text, label, "");
    if (n == 0 && *open == '\0' && allows_unknown(r))
        add(out, text, label, label);
}

void follow(const rig *r, const char *text, char label, text_list *out)
{
    const char labels[] = {label, '\0'};
    static reading x;

    out->n = 0;
    if (r->n_spellings == 0) {
        add(out, text, labels, "");
        return;
    }
    read_text(r, text, &x);
    if (has_space(r))
        follow_between(r, text, labels, x.open, out);
    else
        follow_along(r, text, labels, x.open, out);
}

void finish(const rig *r, const char *text, bool incomplete, text_list *out)
{
    static reading x;

    out->n = 0;
    read_text(r, text, &x);
    if (r->n_spellings == 0 || x.open[0] == '\0') {
        add(out, text, "", "");
        return;
    }
    if (has_space(r) && add_words(r, text, "", x.open, out) > 0)
        return;
    if (incomplete || (has_space(r) && allows_unknown(r)))
        add(out, text, "", x.open);
}

char last_label(const char *text)
{
    size_t n = strlen(text);

    if (n > 0 && text[n - 1] == '>')
        return strrchr(text, '<')[-1];
    return n > 0 ? text[n - 1] : '\0';
}

void strip(const char *text, char *labels)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            text = strchr(text, '>');
        else
            *labels++ = *text;
    }
    *labels = '\0';
}
