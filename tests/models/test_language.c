/* The beam search with a language: against enumeration of all paths, whose texts
 * are scored word by word. */
#include "models/decoding/language.h"

#include "models/decoding/lexicon.h"
#include "models/decoding/search.h"
#include "tests/support/folder.h"
#include "tests/support/reference/support_ctc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 4096, MOST_LABELS = 8 };

static const char words_arpa[] = "\\data\\\n"
                                 "ngram 1=6\n"
                                 "ngram 2=4\n"
                                 "\\1-grams:\n"
                                 "-99\t<s>\t-0.25\n"
                                 "-1\t</s>\n"
                                 "-1.5\t<unk>\n"
                                 "-0.5\ta\t-0.125\n"
                                 "-0.75\tab\t-0.5\n"
                                 "-1.25\tba\n"
                                 "\\2-grams:\n"
                                 "-0.125\t<s> ab\n"
                                 "-0.25\tab a\n"
                                 "-2\ta a\n"
                                 "-0.0625\ta </s>\n"
                                 "\\end\\\n";

static const char symbols_arpa[] = "\\data\\\n"
                                   "ngram 1=5\n"
                                   "ngram 2=2\n"
                                   "\\1-grams:\n"
                                   "-99\t<s>\t-0.25\n"
                                   "-1\t</s>\n"
                                   "-0.5\ta\t-0.125\n"
                                   "-0.75\tb\t-0.5\n"
                                   "-0.25\t<space>\n"
                                   "\\2-grams:\n"
                                   "-0.125\t<s> b\n"
                                   "-0.25\tb b\n"
                                   "\\end\\\n";

/* A text: its words, each followed by a space, and the sum over its paths. No
 * two texts differ in spaces alone. */
typedef struct text {
    char words[64];
    double score; /* logarithm */
} text;

static text texts[MOST_TEXTS];
static size_t n_texts;

static double log_add(double a, double b)
{
    double high = a > b ? a : b;
    return high == -INFINITY ? high : high + log(exp(a - high) + exp(b - high));
}

static void add_text(const char *words, double score)
{
    size_t i = 0;

    while (i < n_texts && strcmp(texts[i].words, words) != 0)
        i++;
    assert_true(i < MOST_TEXTS && strlen(words) < sizeof texts->words);
    if (i == n_texts) {
        snprintf(texts[n_texts].words, sizeof texts->words, "%s", words);
        texts[n_texts++].score = -INFINITY;
    }
    texts[i].score = log_add(texts[i].score, score);
}

/* A setting of the language, and how its texts are scored by themselves. */
typedef struct rig {
    bm_vocab *vocab;
    bm_language_settings set;
    bm_lm *lm; /* NULL: none */
    /* Adds the texts of labels whose paths have this sum. */
    void (*add)(const struct rig *r, const int32_t *labels, size_t n,
                double log_p);
} rig;

static double lm_score(const rig *r, bm_lm_state *state, const char *word)
{
    bm_lm_state before = *state;

    return r->set.lm_weight * log(10) *
           bm_lm_score(r->lm, &before,
                       strcmp(word, "</s>") == 0 ? bm_lm_end(r->lm)
                                                 : bm_lm_find(r->lm, word),
                       state);
}

/* How often a phrase stands in a text, as whole words. */
static double occurrences(const char *words, const char *phrase)
{
    char all[80], wanted[80];
    double n = 0;

    snprintf(all, sizeof all, " %s", words);
    snprintf(wanted, sizeof wanted, " %s ", phrase);
    for (const char *at = all; (at = strstr(at, wanted)) != NULL; at++)
        n++;
    return n;
}

/* Words are what stands between spaces. */
static void add_spaced(const rig *r, const int32_t *labels, size_t n,
                       double log_p)
{
    char all[64] = "", copy[64] = "", *rest = NULL, *decoded = NULL;
    bm_lm_state state = {0};

    assert_ok(bm_vocab_decode(r->vocab, labels, n, &decoded));
    if (r->lm != NULL)
        bm_lm_begin(r->lm, &state);
    snprintf(copy, sizeof copy, "%s", decoded);
    for (char *w = strtok_r(copy, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest)) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", w);
        if (r->lm == NULL)
            continue;
        if (bm_lm_find(r->lm, w) == bm_lm_unknown(r->lm))
            log_p += r->set.unknown_score;
        log_p += lm_score(r, &state, w) + r->set.word_score;
    }
    if (r->lm != NULL)
        log_p += lm_score(r, &state, "</s>");
    for (size_t i = 0; i < r->set.n_hot_words; i++) {
        char phrase[40];
        double boost = 0;

        assert_int_equal(
            sscanf(r->set.hot_words[i], "%39[^=]=%lf", phrase, &boost), 2);
        log_p += boost * occurrences(all, phrase);
    }
    if (log_p > -INFINITY)
        add_text(all, log_p);
    free(decoded);
}

/* A model of symbols: each label is scored, also where there are several
 * spaces, which are one in the text. */
static void add_symbols(const rig *r, const int32_t *labels, size_t n,
                        double log_p)
{
    char all[64] = "", *rest = NULL, *decoded = NULL;
    bm_lm_state state = {0};

    assert_ok(bm_vocab_decode(r->vocab, labels, n, &decoded));
    bm_lm_begin(r->lm, &state);
    for (size_t i = 0; i < n; i++) {
        const char *symbol = bm_vocab_symbol(r->vocab, labels[i]);

        log_p += lm_score(r, &state, *symbol == ' ' ? "<space>" : symbol) +
                 r->set.word_score;
    }
    for (char *w = strtok_r(decoded, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest))
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", w);
    add_text(all, log_p + lm_score(r, &state, "</s>"));
    free(decoded);
}

/* The lexicon of the vocabulary p q, which is that of no space. */
static const struct {
    const char *word, *spelling;
} spoken[] = {{"a", "p"}, {"ab", "p q"}, {"ba", "p q"}, {"ba", "q q"}};

/* All ways to cut labels into words. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void cut(const rig *r, const char *rest, const char *all,
                bm_lm_state state, double log_p)
{
    char longer[80];

    if (*rest == '\0') {
        add_text(all, log_p + lm_score(r, &state, "</s>"));
        return;
    }
    FOR_EACH (i, spoken) {
        bm_lm_state next = state;
        size_t n = strlen(spoken[i].spelling);
        double p = log_p + r->set.word_score;

        if (strncmp(rest, spoken[i].spelling, n) != 0 ||
            (rest[n] != ' ' && rest[n] != '\0'))
            continue;
        snprintf(longer, sizeof longer, "%s%s ", all, spoken[i].word);
        p += lm_score(r, &next, spoken[i].word);
        cut(r, rest + n + strspn(rest + n, " "), longer, next, p);
    }
    if (r->set.unknown_score > -INFINITY && *rest == 'q') { /* p is a word */
        bm_lm_state next = state;
        double p = log_p + r->set.word_score + r->set.unknown_score;

        p += lm_score(r, &next, "q");
        snprintf(longer, sizeof longer, "%sq ", all);
        cut(r, rest + 1 + strspn(rest + 1, " "), longer, next, p);
    }
}

static void add_spoken(const rig *r, const int32_t *labels, size_t n,
                       double log_p)
{
    char *decoded = NULL;
    bm_lm_state state;

    assert_ok(bm_vocab_decode(r->vocab, labels, n, &decoded));
    bm_lm_begin(r->lm, &state);
    cut(r, decoded, "", state, log_p);
    free(decoded);
}

/* The text of a hypothesis, as those of the enumeration. */
static void write_text_of(const rig *r, const bm_language *language,
                          const bm_hypothesis *h, char *out, size_t room)
{
    size_t n = 0;
    int32_t labels[MOST_LABELS];
    char *decoded = NULL;

    out[0] = '\0';
    for (size_t k = 0; k < h->n_labels; k++)
        labels[k] = h->labels[k].label;
    for (size_t i = 0; i < h->n_words; i++) {
        const bm_found_word *w = &h->words[i];

        assert_true(w->begin < w->end && w->end <= h->n_labels);
        assert_int_equal(w->first, h->labels[w->begin].first);
        assert_int_equal(w->last, h->labels[w->end - 1].last);
        assert_ok(bm_vocab_decode(r->vocab, labels + w->begin,
                                  w->end - w->begin, &decoded));
        n += (size_t)snprintf(out + n, room - n, "%s ",
                              w->word >= 0 ? bm_language_word(language, w->word)
                                           : decoded);
        assert_true(n < room);
        free(decoded);
    }
}

/* All hypotheses of an unlimited beam are those of the enumeration. */
static void check_sums(const rig *r, uint64_t key, size_t T)
{
    size_t C = bm_vocab_size(r->vocab), paths = 1;
    bm_decoder_settings s = bm_decoder_defaults(C, bm_vocab_space(r->vocab));
    bm_language *language = NULL;
    bm_decoder *d = NULL;
    bm_hypotheses found;
    float *y = normals(key, T * C, 2);

    bm_log_posteriors(y, T, C, C, y);
    n_texts = 0;
    for (size_t t = 0; t < T; t++)
        paths *= C;
    for (size_t path = 0; path < paths; path++) {
        int32_t labels[MOST_LABELS];
        size_t n = 0, last = 0, rest = path;
        double log_p = 0;

        for (size_t t = 0; t < T; t++, rest /= C) {
            size_t k = rest % C;

            log_p += (double)y[t * C + k];
            if (k != 0 && k != last)
                labels[n++] = (int32_t)k;
            last = k;
        }
        r->add(r, labels, n, log_p);
    }
    assert_ok(bm_language_open(&language, &r->set, r->vocab));
    s.language = language;
    s.beam = s.nbest = 100000;
    s.threshold = INFINITY;
    s.symbol_threshold = -INFINITY;
    assert_ok(bm_decoder_new(&d, &s));
    assert_ok(bm_decoder_run(d, y, T, &found));
    assert_int_equal(found.n, n_texts);
    for (size_t i = 0; i < found.n; i++) {
        char words[80];
        size_t j = 0;

        write_text_of(r, language, &found.best[i], words, sizeof words);
        while (j < n_texts && strcmp(texts[j].words, words) != 0)
            j++;
        if (j == n_texts)
            fail_msg("no text is \"%s\"", words);
        assert_true(near(found.best[i].score, texts[j].score, 1e-6));
        assert_true(i == 0 || found.best[i].score <= found.best[i - 1].score);
    }
    bm_decoder_free(d);
    bm_language_close(language);
    free(y);
}

static bm_vocab *vocabulary(const char *symbols, bool words)
{
    bm_vocab *v = NULL;

    assert_ok(bm_vocab_parse(&v, symbols, words));
    return v;
}

static const char spaced[] = "<blank>\n<space>\na\nb\n";
static const char phones[] = "<blank>\np\nq\n";

static rig with_lm(const char *vocab, bool words, const char *arpa)
{
    rig r = {.vocab = vocabulary(vocab, words), .set = bm_language_defaults()};

    write_text("model.arpa", arpa);
    r.set.lm = in_folder("model.arpa");
    assert_ok(bm_lm_open(&r.lm, r.set.lm));
    return r;
}

static void close_rig(rig *r)
{
    bm_lm_close(r->lm);
    bm_vocab_free(r->vocab);
}

static void test_words_between_spaces_are_scored(void **state)
{
    rig r = with_lm(spaced, false, words_arpa);

    (void)state;
    r.add = add_spaced;
    for (uint64_t key = 0; key < 8; key++)
        check_sums(&r, key, key % 6);
    r.set.unknown_score = -INFINITY; /* words of the model alone */
    for (uint64_t key = 10; key < 18; key++)
        check_sums(&r, key, 1 + key % 5);
    close_rig(&r);
}

static void test_symbols_are_scored(void **state)
{
    rig r = with_lm(spaced, false, symbols_arpa);

    (void)state;
    r.add = add_symbols;
    for (uint64_t key = 20; key < 28; key++)
        check_sums(&r, key, key % 6);
    close_rig(&r);
}

static void test_words_without_spaces_are_those_of_the_lexicon(void **state)
{
    rig r = with_lm(phones, true, words_arpa);

    (void)state;
    write_text("lexicon.txt", "a p\nab p q\n\nba  p\tq\nba q q\nba q q\n");
    r.set.lexicon = in_folder("lexicon.txt");
    r.add = add_spoken;
    for (uint64_t key = 30; key < 38; key++)
        check_sums(&r, key, key % 7);
    close_rig(&r);
}

static void test_hot_words_are_boosted_where_they_stand(void **state)
{
    static const char *const hot[] = {"a=1.5", "a b=0.75", "ab=2", "b a=1",
                                      "b=0.5"};
    rig r = {.vocab = vocabulary(spaced, false), .set = bm_language_defaults()};

    (void)state;
    r.set.hot_words = hot;
    r.set.n_hot_words = 5;
    r.add = add_spaced;
    for (uint64_t key = 40; key < 48; key++)
        check_sums(&r, key, 1 + key % 6);
    close_rig(&r);
    r = with_lm(spaced, false, words_arpa);
    r.set.hot_words = hot;
    r.set.n_hot_words = 5;
    r.add = add_spaced;
    for (uint64_t key = 50; key < 54; key++)
        check_sums(&r, key, 1 + key % 6);
    close_rig(&r);
}

/* An e with a combining acute is the character that the vocabulary has; the word of
 * a lexicon stays as it is written. */
static void test_decomposed_accents_are_composed(void **state)
{
    static const char *const hot[] = {"e\xcc\x81=2", "be\xcc\x81 e\xcc\x81"};
    rig r = {.vocab = vocabulary("<blank>\n<space>\n\xc3\xa9\nb\n", false),
             .set = bm_language_defaults()};
    bm_language *language = NULL;
    bm_lexicon *l = NULL;
    int32_t labels[2] = {0};

    (void)state;
    r.set.hot_words = hot;
    r.set.n_hot_words = 2;
    assert_ok(bm_language_open(&language, &r.set, r.vocab));
    bm_language_close(language);
    write_text("lexicon.txt", "be\xcc\x81\n");
    assert_ok(bm_lexicon_read(&l, in_folder("lexicon.txt"), r.vocab));
    assert_int_equal(l->n_spellings, 1);
    assert_int_equal(bm_lexicon_spelling(l, 0, NULL), 2);
    bm_lexicon_spelling(l, 0, labels);
    assert_int_equal(labels[0], bm_vocab_class(r.vocab, "b"));
    assert_int_equal(labels[1], bm_vocab_class(r.vocab, "\xc3\xa9"));
    assert_string_equal(l->texts[0], "be\xcc\x81");
    bm_lexicon_free(l);
    close_rig(&r);
}

static void refused(const rig *r, bm_status expected, const char *message)
{
    bm_language *language = NULL;

    assert_int_equal(bm_language_open(&language, &r->set, r->vocab), expected);
    if (strstr(bm_last_message(), message) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", message, bm_last_message());
}

static void refused_lexicon(const char *lexicon, const char *message)
{
    rig r = {.vocab = vocabulary(spaced, false), .set = bm_language_defaults()};

    write_text("bad.txt", lexicon);
    r.set.lexicon = in_folder("bad.txt");
    refused(&r, BM_ERR_FORMAT, message);
    bm_vocab_free(r.vocab);
}

static void test_errors_of_lexicons_are_placed(void **state)
{
    (void)state;
    refused_lexicon("ac a c\nc\n", "it lacks \"c\" of \"ac\"");
    refused_lexicon("ab\n\nb\xe9\n", "bad.txt:3: the line is not UTF-8");
    refused_lexicon("\n \n", "bad.txt has no words");
    refused_lexicon("AB\n", "it lacks \"A\" of \"AB\"; do upper and lower");
}

static void test_a_spelling_may_have_the_name_space(void **state)
{
    bm_vocab *vocab = vocabulary("<blank>\nch\n<space>\n", true);
    bm_lexicon *l = NULL;
    int32_t labels[2] = {0};

    (void)state;
    write_text("lexicon.txt", "a ch <space>\n");
    assert_ok(bm_lexicon_read(&l, in_folder("lexicon.txt"), vocab));
    assert_int_equal(l->n_spellings, 1);
    assert_int_equal(bm_lexicon_spelling(l, 0, labels), 2);
    assert_int_equal(labels[0], 1);
    assert_int_equal(labels[1], 2);
    bm_lexicon_free(l);
    bm_vocab_free(vocab);
}

/* Kaldi's lexicon.txt has words for what is not spoken. */
static void test_words_with_unknown_symbols_are_left_out(void **state)
{
    bm_vocab *vocab = vocabulary(phones, true);
    bm_lexicon *l = NULL;

    (void)state;
    write_text("lexicon.txt", "!SIL SIL\n<UNK> SPN\nab p q\nac p r q\n");
    assert_ok(bm_lexicon_read(&l, in_folder("lexicon.txt"), vocab));
    assert_int_equal(l->n_words, 1);
    assert_string_equal(l->texts[0], "ab");
    assert_int_equal(l->n_spellings, 1);
    assert_int_equal(bm_lexicon_spelling(l, 0, NULL), 2);
    bm_lexicon_free(l);
    bm_vocab_free(vocab);
}

static void refused_hot(const char *hot, const char *message)
{
    rig r = {.vocab = vocabulary(spaced, false), .set = bm_language_defaults()};

    r.set.hot_words = &hot;
    r.set.n_hot_words = 1;
    refused(&r, BM_ERR_ARG, message);
    write_text("hot.txt", "ab\n");
    r.set.hot_file = in_folder("hot.txt");
    r.set.n_hot_words = 0;
    r.set.hot_boost = -1;
    refused(&r, BM_ERR_FORMAT,
            "hot.txt:1: hot word \"ab\": the boost must be greater");
    bm_vocab_free(r.vocab);
}

static void test_errors_of_hot_words_are_named(void **state)
{
    (void)state;
    refused_hot("abc", "hot word \"abc\": the vocabulary of the network lacks "
                       "\"c\"");
    refused_hot("a=b", "expected a number after '='");
    refused_hot("a=0", "the boost must be greater than 0");
    refused_hot("=3", "no word");
}

/* The limit is on the spellings of one phrase: nine words that can be spelled in
 * two ways have 512, ten have 1024. */
static void test_many_hot_words_have_a_lexicon_without_spaces(void **state)
{
    static const char *const nine[] = {"a a a a a a a a a"};
    static const char *const ten[] = {"a a a a a a a a a a"};
    rig r = {.vocab = vocabulary(phones, true), .set = bm_language_defaults()};
    char *lines = zeros(2 * 1001, 1);
    bm_language *language = NULL;

    (void)state;
    for (size_t i = 0; i < 1001; i++)
        snprintf(lines + 2 * i, 3, "b\n");
    write_text("hot.txt", lines);
    write_text("lexicon.txt", "a p\na q\nb q p\n");
    r.set.lexicon = in_folder("lexicon.txt");
    r.set.hot_file = in_folder("hot.txt");
    r.set.hot_words = nine;
    r.set.n_hot_words = 1;
    assert_ok(bm_language_open(&language, &r.set, r.vocab));
    bm_language_close(language);
    r.set.hot_words = ten;
    refused(&r, BM_ERR_ARG, "too many spellings");
    bm_vocab_free(r.vocab);
    free(lines);
}

/* "a" is a word, and a phone. Of a vocabulary of words the model may have many
 * more. */
static void test_a_model_of_words_is_none_of_phones(void **state)
{
    rig r = with_lm("<blank>\na\nb\nd\ne\nk\n", true, words_arpa); /* a ab ba */
    bm_language *language = NULL;

    (void)state;
    refused(&r, BM_ERR_FORMAT,
            "2 of its 3 words are not symbols of the network, such as \"ab\"; "
            "if it is a model of words, give --lexicon");
    close_rig(&r);
    r = with_lm("<blank>\na\n", true, words_arpa);
    assert_ok(bm_language_open(&language, &r.set, r.vocab));
    bm_language_close(language);
    close_rig(&r);
}

static void test_models_that_do_not_fit_are_refused(void **state)
{
    rig r = with_lm(spaced, false,
                    "\\data\\\nngram 1=2\n\\1-grams:\n-1 a\n-1 b\n"
                    "\\end\\\n");

    (void)state;
    refused(&r, BM_ERR_FORMAT, "is a model of characters without a space");
    close_rig(&r);
    r = with_lm(spaced, false,
                "\\data\\\nngram 1=1\n\\1-grams:\n-1 A\n\\end\\\n");
    refused(&r, BM_ERR_FORMAT, "do upper and lower case agree?");
    close_rig(&r);
    r = with_lm(spaced, false, words_arpa);
    r.set.lm_weight = -1;
    refused(&r, BM_ERR_ARG, "the weight of a language model is at least 0");
    close_rig(&r);
}

/* Only "a" was spoken, the lexicon has only "ab": the text is what was spoken. */
static void test_an_unfinished_word_is_better_than_none(void **state)
{
    static const float y[] = {-INFINITY, -INFINITY, 0, -INFINITY};
    rig r = {.vocab = vocabulary(spaced, false), .set = bm_language_defaults()};
    bm_decoder_settings s = bm_decoder_defaults(4, 1);
    bm_language *language = NULL;
    bm_decoder *d = NULL;
    bm_hypotheses found;
    char words[80];

    (void)state;
    write_text("lexicon.txt", "ab\n");
    r.set.lexicon = in_folder("lexicon.txt");
    r.set.unknown_score = -INFINITY;
    assert_ok(bm_language_open(&language, &r.set, r.vocab));
    s.language = language;
    assert_ok(bm_decoder_new(&d, &s));
    assert_ok(bm_decoder_run(d, y, 1, &found));
    assert_int_equal(found.n, 1);
    write_text_of(&r, language, &found.best[0], words, sizeof words);
    assert_string_equal(words, "a ");
    bm_decoder_free(d);
    bm_language_close(language);
    bm_vocab_free(r.vocab);
}

/* Between words several spaces are as one. */
static void test_times_of_words_behind_several_spaces(void **state)
{
    enum { T = 8, C = 4 };
    static const int path[T] = {1, 2, 0, 1, 0, 1, 3, 0}; /* " a  b" */
    rig r = {.vocab = vocabulary(spaced, false), .set = bm_language_defaults()};
    bm_decoder_settings s = bm_decoder_defaults(C, 1);
    bm_language *language = NULL;
    bm_decoder *d = NULL;
    bm_hypotheses found;
    float y[T * C];

    (void)state;
    for (size_t i = 0; i < T * C; i++)
        y[i] = path[i / C] == (int)(i % C) ? logf(0.97F) : logf(0.01F);
    write_text("lexicon.txt", "a\nb\n");
    r.set.lexicon = in_folder("lexicon.txt");
    assert_ok(bm_language_open(&language, &r.set, r.vocab));
    s.language = language;
    assert_ok(bm_decoder_new(&d, &s));
    assert_ok(bm_decoder_run(d, y, T, &found));
    assert_int_equal(found.best[0].n_labels, 3);
    assert_int_equal(found.best[0].n_words, 2);
    assert_int_equal(found.best[0].words[0].first, 1);
    assert_int_equal(found.best[0].words[0].last, 1);
    assert_int_equal(found.best[0].labels[1].first, 3);
    assert_int_equal(found.best[0].labels[1].last, 5);
    assert_int_equal(found.best[0].words[1].first, 6);
    assert_string_equal(bm_language_word(language, found.best[0].words[1].word),
                        "b");
    bm_decoder_free(d);
    bm_language_close(language);
    bm_vocab_free(r.vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_between_spaces_are_scored),
        cmocka_unit_test(test_symbols_are_scored),
        cmocka_unit_test(test_words_without_spaces_are_those_of_the_lexicon),
        cmocka_unit_test(test_hot_words_are_boosted_where_they_stand),
        cmocka_unit_test(test_decomposed_accents_are_composed),
        cmocka_unit_test(test_errors_of_lexicons_are_placed),
        cmocka_unit_test(test_a_spelling_may_have_the_name_space),
        cmocka_unit_test(test_words_with_unknown_symbols_are_left_out),
        cmocka_unit_test(test_errors_of_hot_words_are_named),
        cmocka_unit_test(test_many_hot_words_have_a_lexicon_without_spaces),
        cmocka_unit_test(test_a_model_of_words_is_none_of_phones),
        cmocka_unit_test(test_models_that_do_not_fit_are_refused),
        cmocka_unit_test(test_an_unfinished_word_is_better_than_none),
        cmocka_unit_test(test_times_of_words_behind_several_spaces),
    };
    return cmocka_run_group_tests_name("language", tests, folder_make,
                                       folder_remove);
}
