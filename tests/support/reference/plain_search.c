/* plain_search.c - the plain beam search, and the best path of a text. */
#include "tests/support/reference/plain_search.h"

#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 2048, SEEN = 1024 };

typedef struct hypothesis {
    char text[TEXT];
    double blank, label; /* log p of paths that end so */
    double language, score;
    size_t number; /* of equal scores the smaller one is better */
} hypothesis;

/* A text, and the frames in which it was a hypothesis. */
typedef struct window {
    char text[TEXT];
    int first, last;
} window;

static hypothesis beam[MOST_BEAM], candidates[CANDIDATES];
static size_t n_beam, n_candidates;
static window seen[SEEN];
static size_t n_seen;

static double log_add(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);

    return low == -INFINITY ? high : high + log(1 + exp(low - high));
}

static void copy_text(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
}

static window *find_window(const char *text)
{
    for (size_t i = 0; i < n_seen; i++)
        if (strcmp(seen[i].text, text) == 0)
            return &seen[i];
    return NULL;
}

/* Notes that the hypotheses were there in frame t. */
static void note(int t)
{
    for (size_t i = 0; i < n_beam; i++) {
        window *w = find_window(beam[i].text);

        if (w == NULL) {
            assert_true(n_seen < SEEN);
            w = &seen[n_seen++];
            copy_text(w->text, beam[i].text);
            w->first = t;
        }
        w->last = t;
    }
}

static void add_candidate(const char *text, double language, size_t number)
{
    hypothesis *c = &candidates[n_candidates++];

    assert_true(n_candidates <= CANDIDATES);
    copy_text(c->text, text);
    c->blank = c->label = -INFINITY;
    c->language = language;
    c->number = number;
}

static hypothesis *find_candidate(const char *text)
{
    for (size_t i = 0; i < n_candidates; i++)
        if (strcmp(candidates[i].text, text) == 0)
            return &candidates[i];
    return NULL;
}

/* The hypothesis with a blank, its last label or a further space. */
static void stay(const rig *r, const float *y, size_t i)
{
    const hypothesis *h = &beam[i];
    double both = log_add(h->blank, h->label);
    char last = last_label(h->text);
    hypothesis *c = NULL;

    add_candidate(h->text, h->language, i << 16);
    c = &candidates[n_candidates - 1];
    c->blank = both + (double)y[0];
    if (merges_spaces(r, last)) {
        double space = both + (double)y[class_of(r, ' ')];

        if (*h->text == '\0')
            c->blank = log_add(c->blank, space);
        else
            c->label = space;
    } else if (last != '\0') {
        c->label = h->label + (double)y[class_of(r, last)];
    }
}

/* The hypothesis with label k; only `selected` ones make new hypotheses. */
static void extend(const rig *r, const float *y, size_t i, size_t k,
                   bool selected)
{
    static text_list more;
    const hypothesis *h = &beam[i];
    char last = last_label(h->text);
    double p = (last == r->labels[k] ? h->blank : log_add(h->blank, h->label)) +
               (double)y[k];

    if (r->labels[k] == ' ' && merges_spaces(r, last))
        return;
    follow(r, h->text, r->labels[k], &more);
    for (size_t way = 0; way < more.n; way++) {
        hypothesis *c = find_candidate(more.texts[way]);

        if (c == NULL && selected) {
            add_candidate(more.texts[way], language_score(r, more.texts[way]),
                          i << 16 | k << 8 | way);
            c = &candidates[n_candidates - 1];
        }
        if (c != NULL)
            c->label = log_add(c->label, p);
    }
}

static int by_score(const void *a, const void *b)
{
    const hypothesis *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static void cut(const bm_decoder_settings *s)
{
    size_t n = 0;

    for (size_t i = 0; i < n_candidates; i++) {
        hypothesis *c = &candidates[i];

        c->score = log_add(c->blank, c->label) + c->language;
        if (c->score > -INFINITY)
            candidates[n++] = *c;
    }
    qsort(candidates, n, sizeof *candidates, by_score);
    for (n_beam = 0;
         n_beam < n && n_beam < s->beam &&
         candidates[n_beam].score >= candidates[0].score - s->threshold;
         n_beam++)
        beam[n_beam] = candidates[n_beam];
}

/* ---- texts of the last frame --------------------------------------------- */

result results[MOST_RESULTS];
size_t n_results;

static void add_result(const char *words, const char *text, double score)
{
    size_t i = 0;

    while (i < n_results && strcmp(results[i].words, words) != 0)
        i++;
    if (i == n_results) {
        assert_true(n_results++ < MOST_RESULTS);
        copy_text(results[i].words, words);
        results[i].score = results[i].best = -INFINITY;
    }
    results[i].score = log_add(results[i].score, score);
    if (score > results[i].best) {
        results[i].best = score;
        copy_text(results[i].text, text);
    }
}

static void find_results(const rig *r)
{
    n_results = 0;
    for (int incomplete = 0; n_results == 0 && incomplete < 2; incomplete++)
        for (size_t i = 0; i < n_beam; i++) {
            const hypothesis *h = &beam[i];
            static text_list ends;
            char words[TEXT];

            finish(r, h->text, incomplete, &ends);
            for (size_t k = 0; k < ends.n; k++) {
                double score = final_score(r, ends.texts[k], words);

                add_result(words, h->text, log_add(h->blank, h->label) + score);
            }
        }
}

void search_plainly(const rig *r, const bm_decoder_settings *s, const float *y,
                    size_t T, bool noting)
{
    size_t C = s->classes;

    assert_true(s->beam <= MOST_BEAM);
    n_beam = 1;
    beam[0] = (hypothesis){.label = -INFINITY};
    n_seen = 0;
    if (noting)
        note(-1);
    for (size_t t = 0; t < T; t++, y += C) {
        float most = -INFINITY;

        n_candidates = 0;
        for (size_t k = 1; k < C; k++)
            most = fmaxf(most, y[k]);
        for (size_t i = 0; i < n_beam; i++)
            stay(r, y, i);
        for (size_t i = 0; i < n_beam; i++)
            for (size_t k = 1; k < C; k++)
                extend(r, y, i, k,
                       y[k] == most || (double)y[k] >= s->symbol_threshold);
        cut(s);
        if (noting)
            note((int)t);
    }
    find_results(r);
}

/* ---- the best path ------------------------------------------------------- */

/* Takes the path to a place if it is better; of equal paths the first one. */
static void take(path *to, const path *from)
{
    if (from->score > to->score)
        *to = *from;
}

/* The window of the first k labels of a text. */
static const window *window_of(const char *text, size_t k)
{
    char part[TEXT];
    size_t n = 0;

    for (; k > 0; k--) {
        n++;
        if (text[n] == '<')
            n += strcspn(text + n, ">") + 1;
    }
    snprintf(part, sizeof part, "%.*s", (int)n, text);
    return find_window(part);
}

/* The best paths that end behind k labels of a text: in the last one, and in the
 * blank behind it. Of equal paths that is best which is less far in the frame
 * before. */
typedef struct place {
    path label, blank;
} place;

/* Goes on by a frame to a place, from the one before it and from itself. */
static void go_on(const rig *r, const float *y, char label, bool again,
                  const place *before, const place *here, place *to)
{
    if (before != NULL && !again)
        take(&to->label, &before->label);
    if (before != NULL)
        take(&to->label, &before->blank);
    take(&to->label, &here->label);
    if (merges_spaces(r, label))
        take(&to->label, &here->blank);
    take(&to->blank, &here->label);
    take(&to->blank, &here->blank);
    to->label.score += (double)y[class_of(r, label)];
    to->blank.score += (double)y[0];
}

bool best_path(const rig *r, const char *text, const float *y, size_t T,
               path *out)
{
    static place now[MOST_FRAMES + 1], next[MOST_FRAMES + 1];
    char labels[TEXT], nothing = merges_spaces(r, '\0') ? ' ' : '-';
    size_t n = 0;

    strip(text, labels);
    n = strlen(labels);
    assert_true(T <= MOST_FRAMES && n <= MOST_FRAMES);
    for (size_t k = 0; k <= n; k++)
        now[k] = (place){{.score = -INFINITY}, {.score = -INFINITY}};
    now[0].blank.score = 0;
    for (size_t t = 0; t < T; t++, y += strlen(r->labels)) {
        for (size_t k = 0; k <= n; k++) {
            const window *w = window_of(text, k);
            char label = k > 0 ? labels[k - 1] : nothing;

            next[k] = (place){{.score = -INFINITY}, {.score = -INFINITY}};
            if (w == NULL || (int)t < w->first || (int)t > w->last)
                continue;
            go_on(r, y, label, k > 1 && labels[k - 2] == label,
                  k > 0 ? &now[k - 1] : NULL, &now[k], &next[k]);
            next[k].label.classes[t] = label;
            next[k].blank.classes[t] = '-';
        }
        memcpy(now, next, sizeof now);
    }
    *out =
        now[n].label.score < now[n].blank.score ? now[n].blank : now[n].label;
    return out->score > -INFINITY;
}
