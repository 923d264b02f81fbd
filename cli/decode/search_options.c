#include "cli/decode/search_options.h"

#include "core/log.h"

#include <math.h>
#include <string.h>

static const char words[] = "--lm FILE or --lexicon FILE";

/* Options that change nothing unless one of the others is given. */
static const struct {
    const char *name, *with, *other, *about;
} dependent[] = {
    {"lm-weight", "lm", NULL, "--lm FILE"},
    {"word-score", "lm", "lexicon", words},
    {"unknown-score", "lm", "lexicon", words},
    {"prior-scale", "priors", NULL, "--priors DIR"},
    {"blank-scale", "priors", NULL, "--priors DIR"},
    {"hot-boost", "hot-words", "hot-word",
     "--hot-words FILE or --hot-word WORDS"},
};

static bool is_given(const bm_arguments *a, const char *name)
{
    return name != NULL && bm_argument(a, name) != NULL;
}

static bm_status check_dependent(const bm_arguments *a)
{
    for (size_t i = 0; i < sizeof dependent / sizeof dependent[0]; i++)
        if (is_given(a, dependent[i].name) && !is_given(a, dependent[i].with) &&
            !is_given(a, dependent[i].other))
            return BM_FAIL(BM_ERR_ARG, "%s: --%s requires %s", a->verb->name,
                           dependent[i].name, dependent[i].about);
    return BM_OK;
}

static bm_status read_language(const bm_arguments *a, bm_language_settings *s,
                               const char **hot_words)
{
    s->lm = bm_argument(a, "lm");
    s->lexicon = bm_argument(a, "lexicon");
    s->hot_file = bm_argument(a, "hot-words");
    s->hot_words = hot_words;
    for (int i = 0; i < a->n_given; i++)
        if (strcmp(a->given[i].flag->name, "hot-word") == 0)
            hot_words[s->n_hot_words++] = a->given[i].value;
    BM_TRY(
        bm_argument_real(a, "lm-weight", s->lm_weight, 0, 1000, &s->lm_weight));
    BM_TRY(bm_argument_real(a, "word-score", s->word_score, -1000, 1000,
                            &s->word_score));
    BM_TRY(bm_argument_real(a, "unknown-score", s->unknown_score, -INFINITY,
                            1000, &s->unknown_score));
    return bm_argument_real(a, "hot-boost", s->hot_boost, 0, 1000,
                            &s->hot_boost);
}

bm_status bm_search_options_read(const bm_arguments *a,
                                 bm_transcriber_settings *out,
                                 const char **hot_words)
{
    long nbest = 1, beam = 0;

    *out = bm_transcriber_defaults();
    BM_TRY(bm_argument_number(a, "nbest", 1, 1, 10000, &nbest));
    BM_TRY(bm_argument_number(a, "beam", 0, 1, 100000, &beam));
    if (beam > 0 && nbest > beam)
        bm_log(BM_WARNING,
               "--nbest %ld: a search with %ld hypotheses has as many readings "
               "at most; give --beam %ld or more",
               nbest, beam, nbest);
    out->n_best = (size_t)nbest;
    out->beam = (size_t)beam;
    out->priors = bm_argument(a, "priors");
    BM_TRY(bm_argument_real(a, "prior-scale", out->prior_scale, 0, 100,
                            &out->prior_scale));
    BM_TRY(bm_argument_real(a, "blank-scale", out->blank_scale, 0, 1000,
                            &out->blank_scale));
    BM_TRY(read_language(a, &out->language, hot_words));
    return check_dependent(a);
}
