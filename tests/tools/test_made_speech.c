/*
 * bmuf_speech: the corpora that it makes, their manifests and sound, what it
 * does after it was killed, and what it refuses.
 */
#include "io/shard/dataset.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/support.h"
#include "tools/speech/grammar.h"

#include <espeak-ng/speak_lib.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEARD = 6, SHARDS = 6 };

/* A corpus of 6, 2 and 2 shards of a minute in `out`, made by so many
 * processes. */
#define CORPUS(out, jobs)                                                      \
    "--out", (out), "--hours", "0.1", "--dev-hours", "0.02", "--test-hours",   \
        "0.02", "--shard-minutes", "1", "--snr", "-3..12", "--listen", "6",    \
        "--jobs", (jobs)
#define SPEECH(...)                                                            \
    command_run(&(command){.program = BMUF_SPEECH,                             \
                           .words = (const char *const[]){__VA_ARGS__, NULL}})

static int set_up(void **state)
{
    outcome o;

    if (folder_make(state) != 0 || mkdir(in_folder("home"), 0700) != 0)
        return -1;
    setenv("HOME", in_folder("home"), 1); /* in which no program has run */
    unsetenv("XDG_RUNTIME_DIR");
    o = SPEECH(CORPUS("made", "1"));
    assert_code(o, 0);
    assert_says(o.out, "made/train: 0.10 hours, ");
    return 0;
}

/* Says how many bytes differ, and where the first is, of each file. */
static void assert_same(const char *one, const char *other)
{
    static const char script[] =
        "diff -r \"$0\" \"$1\" && exit; cd \"$0\"; find . -type f | sort |"
        "while read -r f; do cmp -l \"$f\" \"$1/$f\" 2>&1 |"
        "awk -v f=\"$f\" 'NR == 1 { at = $0 }"
        "END { if (NR > 0) print f \": \" NR \" differ; \" at }'; done; exit 1";
    char *const words[] = {"sh",
                           "-c",
                           (char *)script,
                           (char *)in_folder(one),
                           (char *)in_folder(other),
                           NULL};

    run_tool(words);
}

static bm_dataset *open_set(const char *name)
{
    bm_dataset *d = NULL;

    assert_ok(bm_dataset_open(&d, in_folder(name)));
    return d;
}

/* ---- bytes --------------------------------------------------------------- */

static void test_any_number_of_processes_makes_the_same_bytes(void **state)
{
    (void)state;
    assert_code(SPEECH(CORPUS("three", "3")), 0);
    assert_same("made", "three");
}

static void test_another_seed_makes_other_speech(void **state)
{
    size_t size[2] = {0};
    char *text[2];

    (void)state;
    assert_code(SPEECH("--out=other", "--seed=2", "--hours=0.01",
                       "--dev_hours=0.002", "--test-hours=0.002"),
                0);
    text[0] = slurp(in_folder("made/train/data-00000.jsonl"), &size[0]);
    text[1] = slurp(in_folder("other/train/data-00000.jsonl"), &size[1]);
    assert_true(strncmp(text[0], text[1], 200) != 0);
    free(text[0]);
    free(text[1]);
    assert_fails(SPEECH("--out=other", "--seed=2", "--hours=0.06",
                        "--dev_hours=0.002", "--test-hours=0.002"),
                 73, "hours is 0.01, not 0.06; give another --out");
    assert_fails(SPEECH("--out=other", "--dev-hours=few"), 78,
                 "--dev-hours: 'few'");
}

static void test_a_corpus_without_a_shard_is_named(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("begun"), 0700), 0);
    assert_int_equal(mkdir(in_folder("begun/train"), 0700), 0);
    write_text("begun/speech.json", "{}");
    assert_fails(BMUF("check", "begun/train"), 66,
                 "run bmuf_speech again with the options that began this "
                 "corpus");
}

static pid_t start(const char *const *words)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(in_folder(".")) != 0 ||
            freopen("/dev/null", "w", stderr) == 0)
            _exit(126);
        execv(BMUF_SPEECH, (char *const *)words);
        _exit(127);
    }
    return pid;
}

static bool exists(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

/* Kills the program when a file is there; all its processes end. */
static void kill_at(const char *const *words, const char *file)
{
    pid_t children[FAMILY];
    program p = {.pid = start(words)};
    double end = now() + 50;
    size_t n;

    while (!exists(file) && now() < end)
        pause_for(0.002);
    n = family(&p, children);
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
    assert_true(exists(file));
    assert_true(n > 0);
    assert_gone(children, n);
}

static void
test_a_corpus_that_was_killed_goes_on_to_the_same_bytes(void **state)
{
    const char *const words[] = {BMUF_SPEECH, CORPUS("killed", "2"), NULL};
    outcome o;

    (void)state;
    kill_at(words, "killed/train/data-00001.bmuf.h5");
    assert_false(exists("killed/train/data-00005.bmuf.h5"));
    o = BMUF("check", "killed/train");
    assert_code(o, 65);
    assert_says(o.out, "missing");
    kill_at(words, "killed/train/data-00003.bmuf.h5");
    assert_false(exists("killed/train/data-00005.bmuf.h5"));
    write_text("killed/train/.0123abcd.data-00004.bmuf.h5.tmp", "part");
    o = SPEECH(CORPUS("killed", "3"));
    assert_code(o, 0);
    assert_says(o.err, "resuming: ");
    assert_same("made", "killed");
    /* and once more, with nothing to do */
    o = SPEECH(CORPUS("killed", "1"));
    assert_code(o, 0);
    assert_says(o.err, "resuming: 10 shards are there");
    assert_same("made", "killed");
}

/* ---- contents ------------------------------------------------------------ */

/* A shard ends within half a recording of its length. */
static void test_sets_are_as_long_as_asked(void **state)
{
    static const struct {
        const char *name;
        double hours;
    } sets[] = {{"made/train", 0.1}, {"made/dev", 0.02}, {"made/test", 0.02}};
    bm_dataset *d = NULL;

    (void)state;
    FOR_EACH (i, sets) {
        d = open_set(sets[i].name);
        assert_true(fabs((double)d->frames - sets[i].hours * 360000) <=
                    0.5 * (double)d->n_shards * d->longest);
        bm_dataset_close(d);
    }
    d = open_set("made/train");
    assert_true(fabs((double)d->frames / 36000 - 1) < 0.01);
    bm_dataset_close(d);
}

static void test_all_shards_pass_bmuf_check(void **state)
{
    (void)state;
    assert_says(BMUF("check", "made/train").out, "6 shards");
    assert_code(BMUF("check", "made/train"), 0);
    assert_code(BMUF("check", "made/dev"), 0);
    assert_code(BMUF("check", "made/test", "--stride", "3"), 0);
}

/* The lines of the manifests of a set, as an array; json_decref. */
static json_t *read_manifests(const char *set, size_t shards)
{
    json_t *all = json_array();

    for (size_t i = 0; i < shards; i++) {
        char name[64], *save = NULL, *text;
        size_t size = 0;

        snprintf(name, sizeof name, "%s/data-%05zu.jsonl", set, i);
        text = slurp(in_folder(name), &size);
        for (char *line = strtok_r(text, "\n", &save); line != NULL;
             line = strtok_r(NULL, "\n", &save)) {
            json_t *row = json_loads(line, 0, NULL);

            assert_non_null(row);
            json_array_append_new(all, row);
        }
        free(text);
    }
    return all;
}

static const char *text_of(const json_t *rows, size_t i, const char *key)
{
    const char *text =
        json_string_value(json_object_get(json_array_get(rows, i), key));

    assert_non_null(text);
    return text;
}

static void test_manifests_have_the_texts_of_the_labels(void **state)
{
    json_t *rows = read_manifests("made/train", SHARDS);
    bm_dataset *d = open_set("made/train");
    bm_sequences s = {0};

    (void)state;
    assert_int_equal(json_array_size(rows), d->n);
    assert_true(d->classes > 500);
    for (size_t u = 0; u < d->n_units; u++) {
        const int32_t *labels = NULL;

        assert_ok(bm_dataset_read(d, u, &s));
        labels = s.targets;
        for (size_t i = 0; i < s.n; i++) {
            int64_t at = d->units[u].first + (int64_t)i;
            const char *tag = NULL;
            char *text = NULL;

            assert_ok(bm_vocab_decode(bm_dataset_vocab(d), labels,
                                      (size_t)s.labels[i], &text));
            assert_string_equal(text, text_of(rows, (size_t)at, "text"));
            assert_ok(bm_dataset_tag(d, at, &tag));
            assert_string_equal(tag, text_of(rows, (size_t)at, "id"));
            labels += s.labels[i];
            free(text);
        }
    }
    bm_sequences_free(&s);
    bm_dataset_close(d);
    json_decref(rows);
}

static void test_sets_have_no_speaker_in_common(void **state)
{
    json_t *train = read_manifests("made/train", SHARDS);
    json_t *dev = read_manifests("made/dev", 2);

    (void)state;
    for (size_t i = 0; i < json_array_size(train); i++)
        for (size_t k = 0; k < json_array_size(dev); k++) {
            assert_string_not_equal(text_of(train, i, "speaker"),
                                    text_of(dev, k, "speaker"));
            assert_string_not_equal(strchr(text_of(train, i, "voice"), '+'),
                                    strchr(text_of(dev, k, "voice"), '+'));
        }
    json_decref(train);
    json_decref(dev);
}

/* Power of the two channels of a recording. */
static void measure(const char *id, double power[2])
{
    char name[96];
    SF_INFO info = {0};
    SNDFILE *file = NULL;
    float pair[2];

    snprintf(name, sizeof name, "made/listen/%s.wav", id);
    file = sf_open(in_folder(name), SFM_READ, &info);
    assert_non_null(file);
    assert_int_equal(info.channels, 2);
    power[0] = power[1] = 0;
    while (sf_readf_float(file, pair, 1) == 1)
        for (size_t k = 0; k < 2; k++)
            power[k] += (double)pair[k] * pair[k];
    sf_close(file);
}

static void test_noise_is_as_loud_as_the_manifest_says(void **state)
{
    json_t *rows = read_manifests("made/train", 1);

    (void)state;
    for (size_t i = 0; i < HEARD; i++) {
        double power[2], snr = json_number_value(
                             json_object_get(json_array_get(rows, i), "snr"));

        measure(text_of(rows, i, "id"), power);
        assert_true(fabs(10 * log10(power[0] / power[1]) - snr) < 0.06);
        assert_true(snr >= -3 && snr <= 12);
    }
    json_decref(rows);
}

/* bmuf pack takes the mean of the two channels; half the amplitude is a
 * constant in all features, which normalisation removes. */
static void test_features_are_those_of_bmuf_pack(void **state)
{
    json_t *rows = read_manifests("made/train", 1);
    char text[4096] = "";
    bm_dataset *made, *packed;
    bm_sequences a = {0}, b = {0};
    size_t frames = 0;

    (void)state;
    for (size_t i = 0; i < HEARD; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"id\": \"%s\", \"audio\": \"made/listen/%s.wav\", "
                 "\"text\": \"%s\"}\n",
                 text_of(rows, i, "id"), text_of(rows, i, "id"),
                 text_of(rows, i, "text"));
    write_text("heard.jsonl", text);
    assert_code(BMUF("pack", "--audio", "heard.jsonl", "--out", "packed",
                     "--vocab", "made/train"),
                0);
    made = open_set("made/train");
    packed = open_set("packed");
    assert_string_equal(bm_shard_features_text(made->shards[0]),
                        bm_shard_features_text(packed->shards[0]));
    assert_ok(bm_dataset_read(made, 0, &a));
    assert_ok(bm_dataset_read(packed, 0, &b));
    for (size_t i = 0; i < a.n && i < b.n && i < HEARD; i++) {
        assert_int_equal(a.frames[i], b.frames[i]);
        frames += (size_t)a.frames[i];
    }
    assert_true(frames > 500);
    for (size_t i = 0; i < frames * 40; i++) /* halves have 11 bits */
        assert_true(near(a.x[i], b.x[i], 1e-3));
    bm_sequences_free(&a);
    bm_sequences_free(&b);
    bm_dataset_close(made);
    bm_dataset_close(packed);
    json_decref(rows);
}

static void test_labels_can_be_characters(void **state)
{
    bm_dataset *d = NULL;

    (void)state;
    assert_code(SPEECH("--out", "letters", "--units", "characters", "--hours",
                       "0.01", "--dev-hours", "0.002", "--test-hours", "0.002",
                       "--reverb", "0", "--store", "f32", "--set",
                       "features.mels=23", "--set", "features.rate=16000",
                       "--set", "features.pitch=yes"),
                0);
    d = open_set("letters/train");
    /* the alphabet without letters that no word has, the space, the blank */
    assert_int_equal(d->classes, 26 + 2);
    assert_int_equal(d->features, 23 + 3);
    bm_dataset_close(d);
    assert_code(BMUF("check", "letters/train"), 0);
}

/* ---- words --------------------------------------------------------------- */

typedef struct sounds {
    char word[2000][32], sound[2000][64];
    size_t n;
} sounds;

static void pronounce(void *self, const char *word)
{
    sounds *s = self;
    char capital[32];
    const void *at = capital;

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->word[i], word) == 0)
            return;
    snprintf(capital, sizeof capital, "%s", word);
    if (capital[1] == '\0')
        capital[0] -= 'a' - 'A';
    snprintf(s->word[s->n], sizeof s->word[0], "%s", word);
    snprintf(s->sound[s->n++], sizeof s->sound[0], "%s",
             espeak_TextToPhonemes(&at, espeakCHARS_UTF8, 0));
}

static void test_no_two_words_sound_alike(void **state)
{
    sounds *s = calloc(1, sizeof *s);

    (void)state;
    assert_non_null(s);
    assert_true(espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, NULL, 0) > 0);
    assert_int_equal(espeak_SetVoiceByName("gmw/en-US"), EE_OK);
    bm_grammar_words("everything", pronounce, s);
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->sound[i], s->sound[k]) == 0)
                fail_msg("%s and %s are both [%s]", s->word[i], s->word[k],
                         s->sound[i]);
    espeak_Terminate();
    free(s);
}

/* ---- what is refused ----------------------------------------------------- */

static void test_a_folder_keeps_its_corpus(void **state)
{
    (void)state;
    assert_fails(SPEECH(CORPUS("made", "1"), "--seed", "7"), 73, "made",
                 "seed is 1, not 7", "--out");
    assert_fails(SPEECH(CORPUS("made", "1"), "--set", "features.mels=20"), 73,
                 "features");
}

static void test_a_shard_of_another_corpus_is_refused(void **state)
{
    char *const copy[] = {"cp", "-r", (char *)in_folder("made"),
                          (char *)in_folder("mixed"), NULL};
    char *const mix[] = {
        "cp", (char *)in_folder("made/train/data-00001.bmuf.h5"),
        (char *)in_folder("mixed/train/data-00002.bmuf.h5"), NULL};

    (void)state;
    run_tool(copy);
    run_tool(mix);
    assert_fails(SPEECH(CORPUS("mixed", "1")), 65, "data-00002.bmuf.h5",
                 "remove it");
    assert_int_equal(unlink(in_folder("mixed/train/data-00002.bmuf.h5")), 0);
    assert_code(SPEECH(CORPUS("mixed", "2")), 0);
    assert_same("made", "mixed");
}

static void test_wrong_usage_is_explained(void **state)
{
    (void)state;
    assert_fails(SPEECH("--hours", "1"), 64, "--out");
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    write_text("run/journal.jsonl", "");
    assert_fails(SPEECH(CORPUS("run", "1")), 73, "run is a run",
                 "another folder");
    assert_fails(SPEECH("--out", "x", "--hour", "1"), 64, "--hour", "hours");
    assert_fails(SPEECH("--out", "x", "--hours"), 64, "needs a value");
    assert_fails(SPEECH("--out", "x", "wav"), 64, "wav");
    assert_fails(SPEECH("--out", "x", "--hours", "0"), 78, "hours");
    assert_fails(SPEECH("--out", "x", "--snr", "5..-5"), 78, "--snr 5..-5");
    assert_fails(SPEECH("--out", "x", "--snr", "loud"), 78, "--snr loud");
    assert_fails(SPEECH("--out", "x", "--reverb", "-1"), 78, "--reverb -1");
    assert_fails(SPEECH("--out", "x", "--set", "features.normalise=global"), 78,
                 "features.normalise");
    assert_fails(SPEECH("--out", "x", "--set", "features.mels=300"), 78,
                 "mels");
    assert_false(exists("x"));
    assert_says(SPEECH("--help").out, "no\nsubstitute for recordings");
}

static void test_espeak_without_data_is_explained(void **state)
{
    (void)state;
    setenv("ESPEAK_DATA_PATH", in_folder("."), 1);
    assert_fails(SPEECH("--out", "mute", "--hours", "0.01"), 66,
                 "espeak-ng-data");
    unsetenv("ESPEAK_DATA_PATH");
    assert_code(SPEECH("--out", "mute", "--hours", "0.01"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_processes_makes_the_same_bytes),
        cmocka_unit_test(test_another_seed_makes_other_speech),
        cmocka_unit_test(test_a_corpus_without_a_shard_is_named),
        cmocka_unit_test(
            test_a_corpus_that_was_killed_goes_on_to_the_same_bytes),
        cmocka_unit_test(test_sets_are_as_long_as_asked),
        cmocka_unit_test(test_all_shards_pass_bmuf_check),
        cmocka_unit_test(test_manifests_have_the_texts_of_the_labels),
        cmocka_unit_test(test_sets_have_no_speaker_in_common),
        cmocka_unit_test(test_noise_is_as_loud_as_the_manifest_says),
        cmocka_unit_test(test_features_are_those_of_bmuf_pack),
        cmocka_unit_test(test_labels_can_be_characters),
        cmocka_unit_test(test_no_two_words_sound_alike),
        cmocka_unit_test(test_a_folder_keeps_its_corpus),
        cmocka_unit_test(test_a_shard_of_another_corpus_is_refused),
        cmocka_unit_test(test_wrong_usage_is_explained),
        cmocka_unit_test(test_espeak_without_data_is_explained),
    };

    return cmocka_run_group_tests_name("made_speech", tests, set_up,
                                       folder_remove);
}
