#include "cli/score/text_errors.h"

#include "core/grow.h"
#include "io/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 8 }; /* of groups in groups */

/* Texts as classes, of words or of characters. */
typedef struct coded {
    int32_t *of; /* [n] */
    size_t n, room;
} coded;

struct bm_text_scorer {
    bm_text_rules rules;
    const bm_edit_costs *costs;
    bm_vocab *words, *characters; /* all that were seen */
    int32_t open, close, slash, none;
    coded ref, hyp;
    bm_text_arc *arcs; /* [room_arcs] */
    size_t room_arcs;
};

/* ---- texts to classes ---------------------------------------------------- */

static bm_status encode(bm_vocab *v, const char *text, coded *out)
{
    size_t unknown = 0, length = strlen(text);

    BM_TRY(bm_grow(&out->of, length, &out->room, sizeof *out->of));
    BM_TRY(bm_vocab_learn(v, text));
    BM_TRY(bm_vocab_encode(v, text, out->of, &out->n, &unknown, NULL));
    if (unknown > 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "<blank> is not a word, but the blank of CTC; remove it from "
            "the texts, or write it in another way");
    return BM_OK;
}

static bm_status class_of(bm_text_scorer *s, const char *word, int32_t *out)
{
    BM_TRY(encode(s->words, word, &s->ref));
    *out = s->ref.of[0];
    return BM_OK;
}

bm_status bm_text_scorer_new(bm_text_scorer **out, const bm_text_rules *rules,
                             const bm_edit_costs *costs)
{
    bm_text_scorer *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to score texts");
    s->rules = *rules;
    s->costs = costs;
    BM_TRY_DONE(bm_vocab_new(&s->words, true));
    BM_TRY_DONE(bm_vocab_new(&s->characters, false));
    BM_TRY_DONE(class_of(s, "{", &s->open));
    BM_TRY_DONE(class_of(s, "}", &s->close));
    BM_TRY_DONE(class_of(s, "/", &s->slash));
    BM_TRY_DONE(class_of(s, "@", &s->none));
    *out = s;
    s = NULL;
done:
    bm_text_scorer_free(s);
    return status;
}

void bm_text_scorer_free(bm_text_scorer *s)
{
    if (s == NULL)
        return;
    bm_vocab_free(s->words);
    bm_vocab_free(s->characters);
    free(s->ref.of);
    free(s->hyp.of);
    free(s->arcs);
    free(s);
}

void bm_text_errors_free(bm_text_errors *e)
{
    free(e->word_pairs.of);
    free(e->character_pairs.of);
    *e = (bm_text_errors){0};
}

const char *bm_text_word(const bm_text_scorer *s, int32_t class)
{
    return bm_vocab_symbol(s->words, class);
}

const char *bm_text_character(const bm_text_scorer *s, int32_t class)
{
    const char *symbol = bm_vocab_symbol(s->characters, class);

    return strcmp(symbol, " ") == 0 ? "<space>" : symbol;
}

/* Is a word a mark of groups, as build reads them? *depth: of groups here. */
static bool is_mark(const char *word, size_t *depth)
{
    if (word[0] == '\0' || word[1] != '\0')
        return false;
    if (word[0] == '{')
        ++*depth;
    else if (*depth == 0 || strchr("}/@", word[0]) == NULL)
        return false;
    else if (word[0] == '}')
        --*depth;
    return true;
}

/* A word by the rules, but marks of groups as they are. */
static bm_status print_word(const bm_text_scorer *s, const char *word,
                            size_t *depth, FILE *out)
{
    char *ruled = NULL;

    if (is_mark(word, depth)) {
        fprintf(out, "%s ", word);
        return BM_OK;
    }
    BM_TRY(bm_text_apply(&s->rules, word, &ruled));
    fprintf(out, "%s ", ruled);
    free(ruled);
    return BM_OK;
}

/* The words of a text with groups by the rules. */
static bm_status apply_to_words(const bm_text_scorer *s, const char *text,
                                char **out)
{
    char *words = strdup(text), *rest = NULL;
    FILE *memory = NULL;
    size_t size = 0, depth = 0;
    bm_status status = BM_OK;

    *out = NULL;
    memory = open_memstream(out, &size);
    if (words == NULL || memory == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a text");
    for (char *word = strtok_r(words, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest))
        BM_TRY_DONE(print_word(s, word, &depth, memory));
done:
    if (memory != NULL && fclose(memory) != 0 && status == BM_OK)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    free(words);
    return status;
}

/* ---- references with alternatives ---------------------------------------- */

/* A group that has begun: where, and the ends of its alternatives so far. */
typedef struct group {
    size_t start, ends[BM_MOST_ARCS_INTO], n;
} group;

typedef struct builder {
    bm_text_graph graph;
    size_t at; /* the node at the end of what was read */
    group open[MOST_DEPTH];
    size_t depth;
} builder;

static void add_arc(builder *b, size_t from, size_t to, int32_t symbol)
{
    b->graph.arcs[b->graph.n_arcs++] = (bm_text_arc){from, to, symbol};
}

static bm_status end_alternative(group *g, size_t at)
{
    if (g->n == BM_MOST_ARCS_INTO)
        return BM_FAIL(BM_ERR_FORMAT, "more than %d alternatives",
                       BM_MOST_ARCS_INTO);
    g->ends[g->n++] = at;
    return BM_OK;
}

static bm_status end_group(builder *b)
{
    group *g = &b->open[b->depth - 1];

    BM_TRY(end_alternative(g, b->at));
    b->at = b->graph.n_nodes++;
    for (size_t i = 0; i < g->n; i++)
        add_arc(b, g->ends[i], b->at, -1);
    b->depth--;
    return BM_OK;
}

static bm_status read_mark(const bm_text_scorer *s, builder *b, int32_t class)
{
    if (class == s->open) {
        if (b->depth == MOST_DEPTH)
            return BM_FAIL(BM_ERR_FORMAT, "alternatives in more than %d groups",
                           MOST_DEPTH);
        b->open[b->depth++] = (group){.start = b->at};
        return BM_OK;
    }
    if (class == s->slash) {
        BM_TRY(end_alternative(&b->open[b->depth - 1], b->at));
        b->at = b->open[b->depth - 1].start;
        return BM_OK;
    }
    return class == s->close ? end_group(b) : BM_OK;
}

/* Outside of groups only "{" is a mark. Every word adds a node, and so does the
 * end of a group, so that arcs are sorted. */
static bm_status build(const bm_text_scorer *s, bool alternatives, builder *b)
{
    for (size_t i = 0; i < s->ref.n; i++) {
        int32_t c = s->ref.of[i];
        bool mark =
            b->depth > 0 && (c == s->close || c == s->slash || c == s->none);

        if (alternatives && (mark || c == s->open)) {
            BM_TRY(read_mark(s, b, c));
            continue;
        }
        add_arc(b, b->at, b->graph.n_nodes, c);
        b->at = b->graph.n_nodes++;
    }
    if (b->depth > 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "a group of alternatives, { a / b }, is not closed: } is missing");
    return BM_OK;
}

/* ---- errors -------------------------------------------------------------- */

static bm_status align_words(bm_text_scorer *s, bool alternatives,
                             bm_text_pairs *out)
{
    builder b = {.graph = {NULL, 0, 1}};

    /* Each word, alternative and group makes one arc at most. */
    BM_TRY(
        bm_grow(&s->arcs, 2 * s->ref.n + 16, &s->room_arcs, sizeof *s->arcs));
    b.graph.arcs = s->arcs;
    BM_TRY(build(s, alternatives, &b));
    BM_TRY(bm_grow(&out->of, b.graph.n_arcs + s->hyp.n, &out->room,
                   sizeof *out->of));
    return bm_align_graph(&b.graph, s->hyp.of, s->hyp.n, s->costs, out->of,
                          &out->n);
}

static void count_words(bm_text_errors *e)
{
    e->words = (bm_edits){0};
    e->n_words = 0;
    for (size_t k = 0; k < e->word_pairs.n; k++) {
        bm_pair p = e->word_pairs.of[k];

        e->n_words += p.ref >= 0;
        e->words.insertions += p.ref < 0;
        e->words.deletions += p.hyp < 0;
        e->words.substitutions += p.ref >= 0 && p.hyp >= 0 && p.ref != p.hyp;
    }
}

bm_status bm_text_aligned(const bm_text_scorer *s, const bm_text_errors *e,
                          bool reference, char **out)
{
    FILE *memory = NULL;
    const char *between = "";
    size_t size = 0;

    *out = NULL;
    memory = open_memstream(out, &size);
    if (memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    for (size_t k = 0; k < e->word_pairs.n; k++) {
        bm_pair p = e->word_pairs.of[k];
        int32_t class = reference ? p.ref : p.hyp;

        if (class < 0)
            continue;
        fprintf(memory, "%s%s", between, bm_text_word(s, class));
        between = " ";
    }
    if (fclose(memory) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    return BM_OK;
}

static bm_status count_characters(bm_text_scorer *s, bm_text_errors *e)
{
    char *ref = NULL, *hyp = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_text_aligned(s, e, true, &ref));
    BM_TRY_DONE(bm_text_aligned(s, e, false, &hyp));
    BM_TRY_DONE(encode(s->characters, ref, &s->ref));
    BM_TRY_DONE(encode(s->characters, hyp, &s->hyp));
    e->n_characters = s->ref.n;
    status = bm_edit_priced(s->ref.of, s->ref.n, s->hyp.of, s->hyp.n, s->costs,
                            &e->characters);
done:
    free(ref);
    free(hyp);
    return status;
}

bm_status bm_text_score(bm_text_scorer *s, const char *ref, bool alternatives,
                        const char *hyp, bm_text_errors *out)
{
    char *a = NULL, *b = NULL;
    bm_status status = BM_OK;

    out->bad_hyp = false;
    BM_TRY_DONE(alternatives ? apply_to_words(s, ref, &a)
                             : bm_text_apply(&s->rules, ref, &a));
    BM_TRY_DONE(encode(s->words, a, &s->ref));
    out->bad_hyp = true;
    BM_TRY_DONE(bm_text_apply(&s->rules, hyp, &b));
    BM_TRY_DONE(encode(s->words, b, &s->hyp));
    out->bad_hyp = false;
    BM_TRY_DONE(align_words(s, alternatives, &out->word_pairs));
    count_words(out);
    status = count_characters(s, out);
done:
    free(a);
    free(b);
    return status;
}

bm_status bm_text_pair_characters(bm_text_scorer *s, bm_text_errors *e)
{
    bm_text_pairs *out = &e->character_pairs;

    BM_TRY(bm_grow(&out->of, s->ref.n + s->hyp.n, &out->room, sizeof *out->of));
    return bm_align(s->ref.of, s->ref.n, s->hyp.of, s->hyp.n, s->costs, out->of,
                    &out->n);
}
