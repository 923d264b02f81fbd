/*
 * hot_words.c - the automaton. A state is the longest end of the labels so far that
 * begins a phrase at the beginning of a word. It is worth the part of the boost
 * that its labels have earned; the boosts of all phrases that end in it are
 * added for good where the word ends.
 */
#include "models/decoding/hot_words.h"

#include "models/decoding/lexicon.h"

#include <stdlib.h>

/* Within a word with which no phrase begins. */
#define OUTSIDE UINT32_MAX

/* Of each node of the tree. */
typedef struct place {
    uint32_t shorter; /* state of the next shorter end */
    uint32_t depth;
    double rate;   /* boost per label of the best phrase below */
    double earned; /* if the word ends here */
} place;

struct bm_hot_words {
    bm_lexicon *tree;
    place *places;
    double gain;
};

static uint32_t next(const bm_hot_words *h, uint32_t from, int32_t label)
{
    while (from != OUTSIDE) {
        uint32_t child = bm_lexicon_child(h->tree, from, label);

        if (child != 0)
            return child;
        from = h->places[from].shorter;
    }
    return label == 0 ? 0 : OUTSIDE;
}

/* What a state is worth as long as the word has not ended. */
static double worth(const bm_hot_words *h, uint32_t state)
{
    return state == OUTSIDE ? 0
                            : h->places[state].rate * h->places[state].depth;
}

static double earned(const bm_hot_words *h, uint32_t state)
{
    return state == OUTSIDE ? 0 : h->places[state].earned;
}

uint32_t bm_hot_step(const bm_hot_words *h, uint32_t from, int32_t label,
                     double *score)
{
    uint32_t to = from;

    if (label == 0 && from != OUTSIDE && h->tree->nodes[from].label == 0)
        return from; /* no word has begun: several spaces are as one */
    to = next(h, from, label);
    if (label == 0)
        *score += earned(h, from);
    *score += worth(h, to) - worth(h, from);
    return to;
}

void bm_hot_end(const bm_hot_words *h, uint32_t from, double *score)
{
    *score += earned(h, from) - worth(h, from);
}

double bm_hot_gain(const bm_hot_words *h)
{
    return h->gain;
}

/* Parents have smaller numbers than their children. */
static void link_places(bm_hot_words *h)
{
    const bm_lexicon_node *nodes = h->tree->nodes;
    double most_worth = 0, most_earned = 0;

    h->places[0].shorter = OUTSIDE;
    for (uint32_t i = 1; i < h->tree->n_nodes; i++) {
        uint32_t parent = nodes[i].parent;
        place *p = &h->places[i];

        p->depth = h->places[parent].depth + 1;
        p->shorter = next(h, h->places[parent].shorter, nodes[i].label);
        p->earned += earned(h, p->shorter);
    }
    for (uint32_t i = (uint32_t)h->tree->n_nodes - 1; i > 0; i--) {
        place *parent = &h->places[nodes[i].parent];

        if (h->places[i].rate > parent->rate)
            parent->rate = h->places[i].rate;
    }
    for (uint32_t i = 0; i < h->tree->n_nodes; i++) {
        most_worth = worth(h, i) > most_worth ? worth(h, i) : most_worth;
        most_earned = earned(h, i) > most_earned ? earned(h, i) : most_earned;
    }
    /* a label that ends a word earns its boosts and begins what follows */
    h->gain = most_worth + most_earned;
}

/* Boosts of the phrases; of equal phrases the largest. */
static void place_boosts(bm_hot_words *h, const bm_hot_phrase *phrases,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t at = 0;
        place *p = NULL;

        for (size_t k = 0; k < phrases[i].n; k++)
            at = bm_lexicon_child(h->tree, at, phrases[i].labels[k]);
        p = &h->places[at];
        if (phrases[i].boost > p->earned) {
            p->earned = phrases[i].boost;
            p->rate = phrases[i].boost / (double)phrases[i].n;
        }
    }
}

bm_status bm_hot_new(bm_hot_words **out, const bm_hot_phrase *phrases, size_t n)
{
    bm_hot_words *h = calloc(1, sizeof *h);
    bm_lexicon_list list = {0};
    bm_status status = BM_OK;

    if (h == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for hot words");
    for (size_t i = 0; i < n; i++)
        BM_TRY_DONE(
            bm_lexicon_list_add(&list, "", phrases[i].labels, phrases[i].n));
    BM_TRY_DONE(bm_lexicon_build(&h->tree, &list));
    h->places = calloc(h->tree->n_nodes, sizeof *h->places);
    if (h->places == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for hot words");
    place_boosts(h, phrases, n);
    link_places(h);
    *out = h;
    h = NULL;
done:
    bm_lexicon_list_free(&list);
    bm_hot_free(h);
    return status;
}

void bm_hot_free(bm_hot_words *h)
{
    if (h == NULL)
        return;
    bm_lexicon_free(h->tree);
    free(h->places);
    free(h);
}
