/*
 * The parts of bmuf_speech that need no espeak-ng: the grammar, the speakers,
 * rooms and noise. Resampling and rooms are compared with formulas and with
 * convolution by its definition.
 */
#include "tests/support/support.h"
#include "tools/speech/acoustics.h"
#include "tools/speech/grammar.h"
#include "tools/speech/speakers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const char *const languages[] = {"everything", "sentences", "numbers",
                                        "spelling", "digits"};

/* ---- the grammar --------------------------------------------------------- */

enum { MOST_WORDS = 2000, TEXTS = 60000 };

/* Words, sorted, and how often each was drawn. */
typedef struct words {
    char word[MOST_WORDS][32];
    size_t n, drawn[MOST_WORDS];
} words;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void collect(void *self, const char *word)
{
    words *w = self;

    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->word[i], word) == 0)
            return;
    assert_true(w->n < MOST_WORDS && strlen(word) < sizeof w->word[0]);
    snprintf(w->word[w->n++], sizeof w->word[0], "%s", word);
}

static words *words_of(const char *language)
{
    words *w = calloc(1, sizeof *w);

    assert_non_null(w);
    bm_grammar_words(language, collect, w);
    qsort(w->word, w->n, sizeof w->word[0], by_name);
    return w;
}

static void count_words(words *w, const char *text)
{
    char copy[BM_LONGEST_TEXT], *save = NULL;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        char(*found)[sizeof w->word[0]] =
            bsearch(word, w->word, w->n, sizeof w->word[0], by_name);

        if (found == NULL)
            fail_msg("'%s' of \"%s\" is not in the vocabulary", word, text);
        w->drawn[found - w->word]++;
    }
}

static void test_the_language_has_more_than_500_words(void **state)
{
    words *w = words_of("everything");

    (void)state;
    assert_true(w->n >= 500);
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(strspn(w->word[i], "abcdefghijklmnopqrstuvwxyz"),
                         strlen(w->word[i]));
    free(w);
}

static void
test_texts_use_all_words_of_the_vocabulary_and_no_other(void **state)
{
    char text[BM_LONGEST_TEXT];

    (void)state;
    FOR_EACH (l, languages) {
        bm_rng rng = bm_rng_make(3, languages[l], 0);
        words *w = words_of(languages[l]);

        for (size_t i = 0; i < TEXTS; i++) {
            bm_grammar_draw(languages[l], &rng, text);
            assert_true(text[0] != '\0');
            count_words(w, text);
        }
        for (size_t i = 0; i < w->n; i++)
            if (w->drawn[i] == 0)
                fail_msg("%s: '%s' is never drawn", languages[l], w->word[i]);
        free(w);
    }
}

static void test_spelled_names_are_spelled_right(void **state)
{
    char text[BM_LONGEST_TEXT];
    bm_rng rng = bm_rng_make(4, "spelled", 0);
    size_t seen = 0;

    (void)state;
    for (size_t i = 0; i < 3000; i++) {
        char *at, name[32] = "", letters[BM_LONGEST_TEXT] = "";
        const char *from;

        bm_grammar_draw("spelling", &rng, text);
        at = strstr(text, " spelled ");
        if (at == NULL)
            continue;
        seen++;
        *at = '\0';
        from = strrchr(text, ' ');
        snprintf(name, sizeof name, "%.31s", from != NULL ? from + 1 : text);
        for (const char *c = at + strlen(" spelled "); *c != '\0'; c++)
            if (*c != ' ')
                strncat(letters, c, 1);
        assert_string_equal(letters, name);
    }
    assert_true(seen > 100);
}

static void test_digits_are_one_to_seven(void **state)
{
    char text[BM_LONGEST_TEXT];
    bm_rng rng = bm_rng_make(5, "digits", 0);
    size_t of[9] = {0};
    words *w = words_of("digits");

    (void)state;
    assert_int_equal(w->n, 10);
    free(w);
    for (size_t i = 0; i < 7000; i++) {
        size_t n = 1;

        bm_grammar_draw("digits", &rng, text);
        for (const char *c = text; *c != '\0'; c++)
            n += *c == ' ';
        assert_in_range(n, 1, 7);
        of[n]++;
    }
    for (size_t n = 1; n <= 7; n++) /* 1000 each; 5 standard deviations */
        assert_in_range(of[n], 850, 1150);
}

static void test_a_seed_gives_the_same_texts(void **state)
{
    char text[3][BM_LONGEST_TEXT];
    size_t differ = 0;

    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        bm_rng rng[3] = {bm_rng_make(1, "t", i), bm_rng_make(1, "t", i),
                         bm_rng_make(2, "t", i)};

        for (size_t k = 0; k < 3; k++)
            bm_grammar_draw("everything", &rng[k], text[k]);
        assert_string_equal(text[0], text[1]);
        differ += strcmp(text[0], text[2]) != 0;
    }
    assert_true(differ >= 45);
}

/* ---- the speakers -------------------------------------------------------- */

enum { SPEAKERS = 400 };

static const char *variant(const bm_speaker *s)
{
    const char *plus = strchr(s->voice, '+');

    assert_non_null(plus);
    return plus + 1;
}

static void test_sets_have_no_speaker_or_variant_in_common(void **state)
{
    static bm_speaker s[BM_SPEECH_N_SETS][SPEAKERS];

    (void)state;
    for (int set = 0; set < BM_SPEECH_N_SETS; set++)
        for (size_t i = 0; i < SPEAKERS; i++)
            s[set][i] = bm_speaker_of(1, (bm_speech_set)set, i);
    for (int a = 0; a < BM_SPEECH_N_SETS; a++)
        for (int b = a + 1; b < BM_SPEECH_N_SETS; b++)
            for (size_t i = 0; i < SPEAKERS; i++)
                for (size_t k = 0; k < SPEAKERS; k++) {
                    assert_string_not_equal(variant(&s[a][i]),
                                            variant(&s[b][k]));
                    assert_string_not_equal(s[a][i].name, s[b][k].name);
                }
}

static void test_speakers_depend_on_seed_and_number_alone(void **state)
{
    bm_speaker a = bm_speaker_of(1, BM_SPEECH_train, 7),
               b = bm_speaker_of(1, BM_SPEECH_train, 7);
    size_t same = 0;

    (void)state;
    assert_memory_equal(&a, &b, sizeof a);
    for (size_t i = 0; i < 100; i++) {
        a = bm_speaker_of(1, BM_SPEECH_train, i);
        b = bm_speaker_of(2, BM_SPEECH_train, i);
        same += a.pitch == b.pitch && a.speed == b.speed;
        assert_in_range(a.formants + BM_FORMANT_STEPS, 0, 2 * BM_FORMANT_STEPS);
    }
    assert_true(same < 10);
}

/* ---- sampling rate and vocal tract --------------------------------------- */

enum { IN_RATE = 22050, SAMPLES = 8000 };

/* The largest difference, away from the ends, between a tone of `hz` that was
 * resampled by `step` and `gain` times the tone that it should be. */
static double tone_error(double hz, double step, double gain)
{
    static int16_t x[SAMPLES];
    bm_resampler *r = NULL;
    bm_signal y = {0};
    double worst = 0;

    for (size_t i = 0; i < SAMPLES; i++)
        x[i] = (int16_t)lround(10000 * sin(2 * pi * hz / IN_RATE * (double)i));
    assert_ok(bm_resampler_new(&r, step));
    assert_ok(bm_resample(r, x, SAMPLES, &y));
    assert_int_equal(y.n, (size_t)(SAMPLES / step));
    for (size_t i = 100; i + 100 < y.n; i++) {
        double at = 2 * pi * hz / IN_RATE * step * (double)i;

        worst = fmax(worst, fabs(y.x[i] - gain * 10000 * sin(at)));
    }
    bm_signal_free(&y);
    bm_resampler_free(r);
    return worst / 10000;
}

static void test_resampling_moves_frequencies_by_the_step(void **state)
{
    static const double steps[] = {22050 / 8000.0, 0.88 * 22050 / 8000,
                                   1.12 * 22050 / 8000, 22050 / 16000.0, 0.7};

    (void)state;
    FOR_EACH (i, steps) {
        double top = IN_RATE / 2.0 * fmin(1, 1 / steps[i]);

        assert_true(tone_error(300, steps[i], 1) < 0.01);
        assert_true(tone_error(0.7 * top, steps[i], 1) < 0.02);
        if (steps[i] > 1) /* what the new rate cannot have is gone */
            assert_true(tone_error(1.3 * top, steps[i], 0) < 0.02);
    }
}

/* ---- rooms --------------------------------------------------------------- */

static void fill_noise(bm_signal *x, size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "noise", 0);

    assert_ok(bm_signal_shape(x, n));
    for (size_t i = 0; i < n; i++)
        x->x[i] = (float)bm_rng_normal(&rng);
}

/* The impulse response that the seed draws. */
static void respond(const bm_room *room, uint64_t seed, bm_signal *x, size_t n)
{
    bm_reverb *r = NULL;
    bm_rng rng = bm_rng_make(seed, "room", 0);

    assert_ok(bm_signal_shape(x, n));
    memset(x->x, 0, n * sizeof *x->x);
    x->x[0] = 1;
    assert_ok(bm_reverb_new(&r));
    assert_ok(bm_reverb_apply(r, room, &rng, x));
    bm_reverb_free(r);
}

static void test_a_room_is_a_convolution(void **state)
{
    enum { N = 9000, LENGTH = 2000 };
    const bm_room room = {.t60 = 0.3, .direct = 3, .rate = 8000};
    bm_signal h = {0}, x = {0}, y = {0};
    bm_reverb *r = NULL;
    bm_rng rng = bm_rng_make(6, "room", 0);

    (void)state;
    respond(&room, 6, &h, LENGTH); /* t60 * 2/3 * rate = 1600 samples */
    fill_noise(&x, N, 1);
    fill_noise(&y, N, 1);
    assert_ok(bm_reverb_new(&r));
    assert_ok(bm_reverb_apply(r, &room, &rng, &y));
    for (size_t i = 0; i < N; i += 7) {
        double sum = 0;

        for (size_t k = 0; k < LENGTH && k <= i; k++)
            sum += (double)h.x[k] * x.x[i - k];
        assert_true(fabs(sum - y.x[i]) < 1e-4);
    }
    bm_reverb_free(r);
    bm_signal_free(&h);
    bm_signal_free(&x);
    bm_signal_free(&y);
}

static double energy(const bm_signal *x, size_t from, size_t to)
{
    double sum = 0;

    for (size_t i = from; i < to; i++)
        sum += (double)x->x[i] * x->x[i];
    return sum;
}

static void test_a_room_falls_by_60_db_in_its_time(void **state)
{
    enum { WINDOW = 800, RATE = 8000 };
    const bm_room room = {.t60 = 0.6, .direct = 5, .rate = RATE};
    double slope = 0;
    bm_signal h = {0};

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        respond(&room, seed, &h, RATE);
        assert_float_equal(h.x[0], 1, 1e-5);
        /* The tail is 5 dB weaker than the direct sound; the transform's
         * rounding is 1e-7. */
        assert_float_equal(-10 * log10(energy(&h, 1, RATE)), 5, 0.01);
        /* From 0.1 to 0.3 s it falls by 60 dB * 0.2 / 0.6. */
        slope += 10 * log10(energy(&h, RATE / 10, RATE / 10 + WINDOW) /
                            energy(&h, 3 * RATE / 10, 3 * RATE / 10 + WINDOW));
    }
    assert_float_equal(slope / 20, 20, 0.5);
    bm_signal_free(&h);
}

static void test_no_reverberation_changes_nothing(void **state)
{
    const bm_room room = {.t60 = 0, .direct = 0, .rate = 8000};
    bm_signal h = {0};

    (void)state;
    respond(&room, 1, &h, 100);
    assert_true(h.x[0] == 1 && energy(&h, 1, 100) == 0);
    bm_signal_free(&h);
}

/* ---- noise --------------------------------------------------------------- */

enum { RATE = 8000, LONG = 40000 };

static bm_noise *open_noise(const bm_signal *speech)
{
    bm_rng rng = bm_rng_make(8, "noise", 0);
    bm_noise *n = NULL;

    assert_ok(bm_noise_new(&n, RATE, &rng));
    bm_noise_remember(n, speech);
    return n;
}

static void test_noise_of_all_kinds_has_its_level(void **state)
{
    static const double levels[] = {-10, 0, 3.5, 20, 60};
    bm_signal speech = {0}, out = {0};
    bm_noise *n = NULL;
    bm_rng rng = bm_rng_make(9, "kinds", 0);

    (void)state;
    fill_noise(&speech, LONG, 2);
    bm_signal_scale(&speech, 123);
    n = open_noise(&speech);
    for (int kind = 0; kind < BM_NOISE_KINDS; kind++)
        FOR_EACH (i, levels) {
            assert_ok(bm_noise_make(n, (bm_noise_kind)kind, levels[i], &speech,
                                    &rng, &out));
            assert_int_equal(out.n, speech.n);
            assert_float_equal(
                10 * log10(bm_signal_power(&speech) / bm_signal_power(&out)),
                levels[i], 1e-3);
        }
    bm_noise_free(n);
    bm_signal_free(&speech);
    bm_signal_free(&out);
}

/* Power of the differences over power: 2 if white. */
static double change(const bm_signal *x)
{
    double sum = 0;

    for (size_t i = 1; i < x->n; i++)
        sum += pow((double)x->x[i] - x->x[i - 1], 2);
    return sum / (double)x->n / bm_signal_power(x);
}

static void test_noise_is_white_or_pink_or_of_speech(void **state)
{
    bm_signal speech = {0}, out = {0};
    bm_noise *n = NULL;
    bm_rng rng = bm_rng_make(9, "kinds", 0);

    (void)state;
    /* "Speech" is a tone: so is its babble. Differences of a tone of frequency
     * w have 2 - 2 cos w of its power. */
    assert_ok(bm_signal_shape(&speech, LONG));
    for (size_t i = 0; i < LONG; i++)
        speech.x[i] = (float)sin(0.5 * (double)i);
    n = open_noise(&speech);
    assert_ok(bm_noise_make(n, BM_NOISE_white, 0, &speech, &rng, &out));
    assert_float_equal(change(&out), 2, 0.05);
    assert_ok(bm_noise_make(n, BM_NOISE_pink, 0, &speech, &rng, &out));
    assert_true(change(&out) < 0.6);
    assert_ok(bm_noise_make(n, BM_NOISE_babble, 0, &speech, &rng, &out));
    assert_float_equal(change(&out), 2 - 2 * cos(0.5), 0.02);
    bm_noise_free(n);
    bm_signal_free(&speech);
    bm_signal_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_language_has_more_than_500_words),
        cmocka_unit_test(
            test_texts_use_all_words_of_the_vocabulary_and_no_other),
        cmocka_unit_test(test_spelled_names_are_spelled_right),
        cmocka_unit_test(test_digits_are_one_to_seven),
        cmocka_unit_test(test_a_seed_gives_the_same_texts),
        cmocka_unit_test(test_sets_have_no_speaker_or_variant_in_common),
        cmocka_unit_test(test_speakers_depend_on_seed_and_number_alone),
        cmocka_unit_test(test_resampling_moves_frequencies_by_the_step),
        cmocka_unit_test(test_a_room_is_a_convolution),
        cmocka_unit_test(test_a_room_falls_by_60_db_in_its_time),
        cmocka_unit_test(test_no_reverberation_changes_nothing),
        cmocka_unit_test(test_noise_of_all_kinds_has_its_level),
        cmocka_unit_test(test_noise_is_white_or_pink_or_of_speech),
    };

    return RUN_GROUP("speech_parts", tests);
}
