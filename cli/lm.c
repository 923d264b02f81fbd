/* lm.c - bmuf lm: compiles and describes language models. */
#include "models/decoding/lm.h"

#include "cli/json_output.h"
#include "cli/verbs.h"
#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/text/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST_TEXT = 1 << 30 };

/* log10 p of the lines of a text. */
typedef struct measure {
    unsigned long long sentences, words, unknown; /* without </s> */
    double log10_p, log10_known;                  /* known: without <unk> */
} measure;

/* Adds one line. */
static void measure_line(const bm_lm *lm, char *line, measure *m)
{
    bm_lm_state states[2];
    char *rest = NULL;
    int at = 0;

    bm_lm_begin(lm, &states[0]);
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest), at = 1 - at) {
        uint32_t w = bm_lm_find(lm, word);
        double p = bm_lm_score(lm, &states[at], w, &states[1 - at]);

        m->words++;
        m->unknown += w == bm_lm_unknown(lm);
        m->log10_p += p;
        m->log10_known += w == bm_lm_unknown(lm) ? 0 : p;
    }
    if (bm_lm_end(lm) != BM_LM_NONE) {
        double p = bm_lm_score(lm, &states[at], bm_lm_end(lm), &states[1 - at]);

        m->log10_p += p;
        m->log10_known += p;
    }
    m->sentences++;
}

/* free(*text). */
static bm_status read_text(const char *path, char **text)
{
    const char *kind = bm_file_kind(path);
    size_t size = 0;

    if (kind != NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, not a text with a sentence on each line; %s",
                       path, kind, bm_file_kind_use(kind));
    BM_TRY(bm_file_read(path, LARGEST_TEXT, text, &size));
    if (strlen(*text) == size)
        return BM_OK;
    free(*text);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has zero bytes; give a text in UTF-8, without them",
                   path);
}

static bm_status measure_text(const bm_lm *lm, const char *path, measure *m)
{
    char *text = NULL, *next = NULL;

    BM_TRY(read_text(path, &text));
    for (char *line = text + bm_utf8_mark(text); line != NULL && *line != '\0';
         line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        measure_line(lm, line, m);
    }
    free(text);
    return m->sentences > 0
               ? BM_OK
               : BM_FAIL(BM_ERR_FORMAT,
                         "%s is empty; give a text with a sentence on each "
                         "line",
                         path);
}

/* Of words and ends of sentences. */
static double perplexity(double log10_p, unsigned long long n)
{
    return n > 0 ? pow(10, -log10_p / (double)n) : NAN;
}

static void print_json(const bm_lm *lm, const measure *m)
{
    json_t *o = json_object(), *counts = json_array();

    for (int k = 1; k <= bm_lm_order(lm); k++)
        json_array_append_new(counts,
                              json_integer((json_int_t)bm_lm_count(lm, k)));
    json_object_set_new(o, "order", json_integer(bm_lm_order(lm)));
    json_object_set_new(o, "counts", counts);
    json_object_set_new(o, "bytes", json_integer((json_int_t)bm_lm_bytes(lm)));
    if (m != NULL) {
        json_object_set_new(o, "sentences",
                            json_integer((json_int_t)m->sentences));
        json_object_set_new(o, "words", json_integer((json_int_t)m->words));
        json_object_set_new(o, "unknown", json_integer((json_int_t)m->unknown));
        json_object_set_new(o, "log10_p", json_real(m->log10_p));
        if (m->words + m->sentences > 0)
            json_object_set_new(
                o, "perplexity",
                json_real(perplexity(m->log10_p, m->words + m->sentences)));
    }
    bm_json_print(o, 0);
}

static void print(const bm_lm *lm, const measure *m)
{
    for (int k = 1; k <= bm_lm_order(lm); k++)
        printf("%d-grams         %llu\n", k,
               (unsigned long long)bm_lm_count(lm, k));
    printf("compact         %.1f MB\n", (double)bm_lm_bytes(lm) / 1e6);
    if (m == NULL)
        return;
    printf("sentences       %llu\n", m->sentences);
    printf("words           %llu, %llu of them unknown\n", m->words,
           m->unknown);
    printf("log10 p         %.4f\n", m->log10_p);
    printf("perplexity      %.4g, without unknown words %.4g\n",
           perplexity(m->log10_p, m->words + m->sentences),
           perplexity(m->log10_known, m->words - m->unknown + m->sentences));
}

/* What `lm *.arpa` would replace is a model that was not made here. */
static bm_status check_output(const char *path)
{
    struct stat info;

    BM_TRY(bm_file_try(path));
    if (stat(path, &info) != 0 || info.st_size == 0 || bm_lm_is_compact(path))
        return BM_OK;
    return BM_FAIL(BM_ERR_CREATE,
                   "%s exists, and is no file that bmuf lm made; give another "
                   "OUT, or remove it",
                   path);
}

static bm_status lm(const bm_arguments *a)
{
    const char *text = bm_argument(a, "score");
    measure m = {0};
    bm_lm *model = NULL;
    bm_status status = BM_OK;

    if (a->n_nouns == 2)
        BM_TRY(check_output(a->nouns[1]));
    BM_TRY(bm_lm_open(&model, a->nouns[0]));
    if (a->n_nouns == 2)
        BM_TRY_DONE(bm_lm_write(model, a->nouns[1]));
    if (text != NULL)
        BM_TRY_DONE(measure_text(model, text, &m));
    if (bm_argument(a, "json") != NULL)
        print_json(model, text != NULL ? &m : NULL);
    else
        print(model, text != NULL ? &m : NULL);
done:
    bm_lm_close(model);
    return status;
}

static const bm_flag flags[] = {
    {"score", "FILE", "print log10 p and the perplexity of a text", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_lm = {
    .name = "lm",
    .nouns = "IN [OUT]",
    .help = "compile a language model",
    .text =
        "  bmuf lm words.arpa.gz words.lm\n"
        "  bmuf lm words.lm --score test.txt\n\n"
        "IN is an ARPA file of n-grams, up to 6-grams, which may be "
        "compressed with\ngzip, or a file that bmuf lm made. OUT is the same "
        "in a compact form that is\nmapped into memory: bmuf decode starts "
        "at once, and several processes share\nit. Without OUT the model is "
        "described only.\n\n"
        "--score takes each line as a sentence. A word that the model does "
        "not have\ncounts as <unk>.\n",
    .flags = flags,
    .least = 1,
    .most = 2,
    .run = lm,
};
