#include "cli/pack/labels.h"

#include "core/grow.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bm_status learn(bm_texts *t, bm_importer *i)
{
    const char *text = NULL;

    for (;;) {
        BM_TRY(i->ops->text(i, &text));
        if (text == NULL)
            break;
        BM_TRY(bm_texts_normalise(t, text, &text));
        BM_TRY(bm_vocab_learn(t->vocab, text));
    }
    bm_vocab_sort(t->vocab);
    return BM_OK;
}

/* Finds the classes of the set for those of the importer. */
static bm_status map(bm_labels *l, const bm_vocab *to)
{
    size_t n = bm_vocab_size(l->from);

    l->to = malloc(n * sizeof *l->to);
    if (l->to == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu classes", n);
    l->to[0] = 0;
    for (size_t k = 1; k < n; k++)
        l->to[k] = bm_vocab_class(to, bm_vocab_symbol(l->from, (int32_t)k));
    return BM_OK;
}

bm_status bm_labels_open(bm_labels *l, bm_texts *t, bm_importer *i)
{
    bm_shard_meta meta = {0};

    i->ops->meta(i, &meta);
    l->from = i->vocab;
    l->per_frame = meta.per_frame;
    bm_vocab_set_right_to_left(t->vocab,
                               bm_features_right_to_left(meta.features_text));
    if (l->from == NULL)
        return t->learned ? learn(t, i) : BM_OK;
    if (t->learned) {
        bm_vocab_free(t->vocab);
        t->vocab = NULL;
        BM_TRY(bm_vocab_copy(&t->vocab, l->from));
        if (!bm_vocab_is_nfc(t->vocab)) /* its labels stay as they are */
            t->form = "none";
        return BM_OK;
    }
    return i->numbered ? BM_OK : map(l, t->vocab);
}

void bm_labels_free(bm_labels *l)
{
    free(l->x);
    free(l->to);
    free(l->uses);
    *l = (bm_labels){0};
}

static void add_example(bm_labels *l, const char *symbol)
{
    enum { MOST = sizeof l->examples / sizeof l->examples[0] };
    char cut[sizeof l->examples[0]];

    snprintf(cut, sizeof cut, "%s", symbol);
    for (size_t k = 0; k < l->n_examples; k++)
        if (strcmp(l->examples[k], cut) == 0)
            return;
    if (l->n_examples < MOST)
        memcpy(l->examples[l->n_examples++], cut, sizeof cut);
}

/* Of a sequence with l->n labels, after which there are `unknown` more. */
static void count_symbols(bm_labels *l, size_t unknown, const char *first)
{
    l->symbols += l->n + unknown;
    l->unknown += unknown;
    l->with_unknown += unknown > 0;
    if (unknown > 0)
        add_example(l, first);
}

static bm_status encode(bm_labels *l, bm_texts *t, const char *text)
{
    size_t unknown = 0;
    char first[64] = "";

    BM_TRY(bm_texts_normalise(t, text, &text));
    BM_TRY(bm_grow(&l->x, strlen(text) + 1, &l->room, sizeof *l->x));
    BM_TRY(bm_vocab_encode(t->vocab, text, l->x, &l->n, &unknown, first));
    count_symbols(l, unknown, first);
    return BM_OK;
}

static bm_status translate(bm_labels *l, const bm_item *item)
{
    size_t unknown = 0;
    const char *first = "";

    BM_TRY(bm_grow(&l->x, item->n_labels, &l->room, sizeof *l->x));
    l->n = 0;
    for (size_t k = 0; k < item->n_labels; k++) {
        int32_t class = item->labels[k];

        if (l->to != NULL && l->to[class] < 0) {
            first = bm_vocab_symbol(l->from, class);
            unknown++;
            continue;
        }
        l->x[l->n++] = l->to != NULL ? l->to[class] : class;
    }
    if (l->per_frame && unknown > 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: its class '%.60s' is not in the vocabulary; give "
                       "one with all classes, or none",
                       item->id, first);
    count_symbols(l, unknown, first);
    return BM_OK;
}

static bm_status count_uses(bm_labels *l, const bm_texts *t)
{
    size_t before = l->uses_room;

    BM_TRY(bm_grow(&l->uses, bm_vocab_size(t->vocab), &l->uses_room,
                   sizeof *l->uses));
    if (l->uses_room > before)
        memset(l->uses + before, 0, (l->uses_room - before) * sizeof *l->uses);
    for (size_t k = 0; k < l->n; k++)
        l->uses[l->x[k]]++;
    return BM_OK;
}

bm_status bm_labels_make(bm_labels *l, bm_texts *t, const bm_item *item)
{
    if (item->labels != NULL)
        BM_TRY(translate(l, item));
    else
        BM_TRY(encode(l, t, item->text != NULL ? item->text : ""));
    return count_uses(l, t);
}

bm_label_list bm_labels_unknown(const bm_labels *l)
{
    bm_label_list list = {""};
    size_t n = 0;

    for (size_t k = 0; k < l->n_examples; k++)
        n += (size_t)snprintf(list.text + n, sizeof list.text - n, "%s'%s'",
                              k > 0 ? ", " : "", l->examples[k]);
    return list;
}

/* Adds ", TEXT" to a list, or ", .." if there is no room for it. */
static void list(bm_label_list *to, const char *text)
{
    size_t n = strlen(to->text), room = sizeof to->text - n - sizeof ", ..";
    const char *comma = n > 0 ? ", " : "";

    if (strlen(comma) + strlen(text) < room)
        snprintf(to->text + n, room, "%s%s", comma, text);
    else if (!bm_ends_with(to->text, ".."))
        snprintf(to->text + n, sizeof ", ..", ", ..");
}

void bm_labels_warn(const bm_labels *l, const bm_texts *t)
{
    bm_label_list unseen = {""}, unused = {""};
    size_t n_unused = 0;
    char text[100];

    if (!t->learned || l->from != NULL)
        return;
    for (size_t k = 1; k < bm_vocab_size(t->vocab) && k < l->uses_room; k++) {
        const char *symbol = bm_vocab_symbol(t->vocab, (int32_t)k);
        long c = bm_text_unseen(symbol);

        snprintf(text, sizeof text, "'%.60s'", symbol);
        if (l->uses[k] == 0) {
            n_unused++;
            list(&unused, text);
        }
        snprintf(text, sizeof text, "U+%04lX (%s)", (unsigned long)c,
                 bm_count_noun((long long)l->uses[k], "time").text);
        if (c > 0)
            list(&unseen, text);
    }
    if (unseen.text[0] != '\0')
        bm_log(BM_WARNING,
               "texts have invisible characters, and each is a class: %s; "
               "replace them, unless the network should write them",
               unseen.text);
    if (n_unused > 0)
        bm_log(BM_WARNING,
               "only texts that were left out have %s of the vocabulary: %s",
               bm_count_noun((long long)n_unused, "symbol").text, unused.text);
}

/* out <- what to do about symbols outside the vocabulary. */
static void suggest(char *out, size_t room, const bm_texts *t, double percent)
{
    if (!t->recorded && bm_vocab_words(t->vocab) &&
        bm_vocab_has_characters(t->vocab))
        snprintf(out, room,
                 "its symbols are characters: add --units characters");
    else
        snprintf(
            out, room,
            "give a vocabulary that has them, or let them pass with "
            "--max-unknown %.0f. The vocabulary ends with '%.60s'; is it "
            "complete?",
            ceil(percent),
            bm_vocab_symbol(t->vocab, (int32_t)bm_vocab_size(t->vocab) - 1));
}

bm_status bm_labels_check(const bm_labels *l, const bm_texts *t, double most)
{
    size_t all = l->symbols > 0 ? l->symbols : 1;
    double percent = 100 * (double)l->unknown / (double)all;
    char remedy[300];

    if (percent <= most)
        return BM_OK;
    suggest(remedy, sizeof remedy, t, percent);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%zu of %zu symbols of the texts are not in the vocabulary, "
                   "e.g. %s. This is more than %g %%, and nothing was packed; "
                   "%s",
                   l->unknown, all, bm_labels_unknown(l).text, most, remedy);
}
