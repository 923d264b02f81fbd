/* main.c - bmuf_speech: makes a corpus of speech to train on. */
#include "cli/help/setting_text.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/file/file.h"
#include "core/file/file_lock.h"
#include "core/file/search_folder.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/shard/dataset.h"
#include "tools/speech/workers.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

static const char lock_name[] = ".speech.lock";

static const char about[] =
    "usage: bmuf_speech --out DIR [--hours 10] [--seed 1] ...\n\n"
    "Makes speech with espeak-ng: sentences, numbers and spelled names of "
    "some\n"
    "680 words, by speakers with accents, voices, pitch, speed and vocal "
    "tracts "
    "of\ntheir own, in rooms, with noise and babble. Writes shards to "
    "DIR/train, DIR/dev\nand DIR/test, which have no speaker in common, each "
    "shard with a manifest of\nits texts. It is a test-bed whose size and "
    "difficulty are under control. It is no\nsubstitute for recordings: "
    "results "
    "on it compare methods, not recognisers.\n\n"
    "  bmuf_speech --out data/speech-10h\n"
    "  bmuf_speech --out data/speech-100h --hours 100 --snr -3..12 --seed 2\n"
    "  bmuf train my.ini --set data.train=data/speech-10h/train \\\n"
    "      --set data.dev=data/speech-10h/dev --out run/1\n\n"
    "The same settings make the same bytes with any number of processes. Run "
    "the same\ncommand again to go on after an interruption.\n\n";

static void print_help(void)
{
    char values[256], text[1024];

    fputs(about, stdout);
    for (const bm_option *o = bm_corpus_options; o->key != NULL; o++) {
        char key[64];

        snprintf(key, sizeof key, "%s", o->key);
        for (char *at = key; *at != '\0'; at++)
            *at = *at == '_' ? '-' : *at;
        bm_option_values(o, values, sizeof values);
        bm_plain_text(o->help, text, sizeof text);
        printf("  --%s: %s%s%s\n      %s\n", key, values,
               o->fallback != NULL ? "; default: " : "; must be given",
               o->fallback != NULL ? o->fallback : "", text);
    }
    puts(
        "  --set features.KEY=VALUE\n"
        "      settings of the features, as of bmuf pack --audio (bmuf options "
        "--pack);\n      features.rate is 8000 by default");
}

static bm_status unknown(const char *word)
{
    char list[512] = "set help ", near[64] = "";

    for (const bm_option *o = bm_corpus_options; o->key != NULL; o++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s ",
                 o->key);
    bm_nearest_word(word, list, near, sizeof near);
    return BM_FAIL(BM_ERR_ARG,
                   "unknown option --%s%s%s; see bmuf_speech --help", word,
                   near[0] != '\0' ? "; did you mean --" : "", near);
}

/* Adds an option with its value to the configuration. */
static bm_status set(bm_config *config, const char *key, const char *value)
{
    char text[8192];
    const bm_option *o = bm_corpus_options;

    if (strcmp(key, "set") == 0)
        return bm_config_set(config, value);
    while (o->key != NULL && strcmp(o->key, key) != 0)
        o++;
    if (o->key == NULL)
        return unknown(key);
    if (snprintf(text, sizeof text, "speech.%s=%s", key, value) >=
        (int)sizeof text)
        return BM_FAIL(BM_ERR_ARG, "--%s: the value is too long", key);
    return bm_config_set(config, text);
}

/* --key value or --key=value; - and _ are the same in a key. */
static bm_status read_options(bm_config *config, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char key[64];
        const char *word = argv[i], *value = strchr(word, '=');
        size_t n = value != NULL ? (size_t)(value - word) : strlen(word);

        if (strncmp(word, "--", 2) != 0 || n - 2 >= sizeof key)
            return BM_FAIL(
                BM_ERR_ARG,
                "unexpected argument '%.60s'; see bmuf_speech --help", word);
        snprintf(key, sizeof key, "%.*s", (int)n - 2, word + 2);
        for (char *at = key; *at != '\0'; at++)
            *at = *at == '-' ? '_' : *at;
        if (value != NULL)
            value++;
        else if (i + 1 < argc)
            value = argv[++i];
        else
            return BM_FAIL(BM_ERR_ARG, "--%s needs a value", key);
        BM_TRY(set(config, key, value));
    }
    return BM_OK;
}

/* In the message of a failure: "--dev-hours" for "command line: speech.dev_hours". */
static bm_status name_options(bm_status status)
{
    static const char origin[] = "command line: ", section[] = "speech.";
    char text[4096], *to = text;
    const char *at = bm_last_message();

    if (status != BM_ERR_CONFIG)
        return status;
    while (*at != '\0' && to < text + sizeof text - 3) {
        const char *from = at;

        if (strncmp(at, origin, strlen(origin)) == 0)
            at += strlen(origin);
        if (strncmp(at, section, strlen(section)) != 0) {
            *to++ = *from;
            at = from + 1;
            continue;
        }
        *to++ = '-';
        *to++ = '-';
        for (at += strlen(section); islower((unsigned char)*at) || *at == '_';
             at++)
            if (to < text + sizeof text - 1)
                *to++ = *at == '_' ? '-' : *at;
    }
    *to = '\0';
    return BM_FAIL(status, "%s", text);
}

/* Opens each set as training does, and prints how large it is. */
static bm_status print_summary(const bm_corpus *c)
{
    for (bm_speech_set set = 0; set < BM_SPEECH_N_SETS; set++) {
        char path[PATH_MAX];
        bm_dataset *d = NULL;

        BM_TRY(bm_corpus_path(c, set, path));
        BM_TRY(bm_dataset_open(&d, path));
        printf("%s: %.2f hours, %zu sequences, %" PRId64 " frames, %" PRId64
               " labels, %zu classes, %s, %s\n",
               path,
               (double)d->frames * bm_recording_shift(&c->features) / 3600,
               d->n, d->frames, d->labels, d->classes,
               bm_count_noun((long long)c->speakers[set], "speaker").text,
               bm_count_noun((long long)d->n_shards, "shard").text);
        bm_dataset_close(d);
    }
    return BM_OK;
}

static bm_status make_missing(const bm_corpus *c)
{
    bm_shard_place places[BM_SPEECH_N_SETS];
    int64_t found = 0;

    for (bm_speech_set set = 0; set < BM_SPEECH_N_SETS; set++) {
        BM_TRY(bm_corpus_find(c, set, &places[set]));
        found += places[set].index;
        if (c->s.listen > 0 && places[set].index > 0)
            bm_log(BM_WARNING,
                   "no recordings of %s to listen to: its first shard is there "
                   "already; give another --out",
                   bm_speech_set_name(set));
    }
    if (found > 0)
        bm_log(BM_NOTE, "resuming: %s %s there",
               bm_count_noun(found, "shard").text, found == 1 ? "is" : "are");
    BM_TRY(bm_workers_run(c, places));
    return print_summary(c);
}

static bm_status make_corpus(const bm_corpus *c)
{
    char listen[PATH_MAX];
    int lock = -1;
    bm_status status = BM_OK;

    BM_TRY(bm_run_folder_refuse(c->s.out));
    BM_TRY(bm_file_make_directory(c->s.out));
    snprintf(listen, sizeof listen, "%.4000s/listen", c->s.out);
    BM_TRY(bm_file_lock(&lock, c->s.out, lock_name));
    BM_TRY_DONE(bm_corpus_prepare(c));
    if (c->s.listen > 0)
        BM_TRY_DONE(bm_file_make_directory(listen));
    BM_TRY_DONE(make_missing(c));
done:
    bm_file_unlock(lock, c->s.out, lock_name);
    return status;
}

static bm_status run(int argc, char **argv)
{
    const bm_section sections[] = {
        {"speech", bm_corpus_options, NULL, NULL},
        {"features", bm_recording_options, NULL, NULL},
        {0}};
    bm_config *config = NULL;
    bm_corpus corpus = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&config));
    BM_TRY_DONE(read_options(config, argc, argv));
    if (bm_config_text(config, "speech", "out") == NULL)
        BM_FAIL_DONE(BM_ERR_ARG, "bmuf_speech needs --out DIR");
    BM_TRY_DONE(name_options(bm_config_check(config, sections)));
    BM_TRY_DONE(name_options(bm_corpus_open(&corpus, config)));
    BM_TRY_DONE(make_corpus(&corpus));
done:
    bm_corpus_free(&corpus);
    bm_config_free(config);
    return status;
}

int main(int argc, char **argv)
{
    bm_status status = bm_terminal_style(NULL);

    BM_ASSERT(status == BM_OK);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            print_help();
            return 0;
        }
    status = run(argc, argv);
    if (status == BM_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = BM_FAIL(BM_ERR_IO, "the results cannot be written to stdout");
    if (status != BM_OK)
        bm_log(BM_ERROR, "%s", bm_last_message());
    return bm_status_exit(status);
}
