/*
 * search_posteriors.c - the beam search alone, on posteriors in a file: for
 * tools/check_decoding, which compares texts and times with another program.
 *
 *   bmuf_search POSTERIORS VOCAB LM|- BEAM THRESHOLD LABEL-THRESHOLD
 *               LM-WEIGHT WORD-SCORE UNKNOWN-SCORE
 *
 * POSTERIORS: the number of classes as an int32; then of each sequence the number
 * of frames as an int32, and log posteriors [frames, classes] as float32. Prints
 * the seconds of processor time of the search, then a line for each sequence: the
 * score, a tab, the text.
 */
#include "core/file/file.h"
#include "models/decoding/language.h"
#include "models/decoding/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST_FILE = 1 << 30 };

static bm_status print(const bm_vocab *vocab, const bm_hypotheses *found,
                       FILE *out)
{
    const bm_hypothesis *h = found->best;
    int32_t *labels = calloc(h->n_labels + 1, sizeof *labels);
    char *text = NULL;
    bm_status status = BM_OK;

    if (labels == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", h->n_labels);
    for (size_t k = 0; k < h->n_labels; k++)
        labels[k] = h->labels[k].label;
    status = bm_vocab_decode(vocab, labels, h->n_labels, &text);
    if (status == BM_OK)
        fprintf(out, "%.9g\t%s\n", h->score, text);
    free(text);
    free(labels);
    return status;
}

/* Searches all sequences of a file; *seconds <- of the search alone. */
static bm_status search(bm_decoder *d, const bm_vocab *vocab, const char *data,
                        size_t size, double *seconds, FILE *out)
{
    size_t classes = bm_vocab_size(vocab), at = sizeof(int32_t);
    int32_t n = 0;

    if (size >= sizeof n)
        memcpy(&n, data, sizeof n);
    if ((size_t)n != classes)
        return BM_FAIL(BM_ERR_FORMAT, "posteriors of %d classes for %zu", n,
                       classes);
    for (; at + sizeof n <= size; at += (size_t)n * classes * sizeof(float)) {
        bm_hypotheses found;
        clock_t began = 0;

        memcpy(&n, data + at, sizeof n);
        at += sizeof n;
        if (n < 0 || (size_t)n > (size - at) / sizeof(float) / classes)
            return BM_FAIL(BM_ERR_FORMAT, "%d frames at byte %zu", n, at);
        began = clock();
        BM_TRY(bm_decoder_run(d, (const float *)(const void *)(data + at),
                              (size_t)n, &found));
        *seconds += (double)(clock() - began) / CLOCKS_PER_SEC;
        if (found.n == 0)
            fprintf(out, "-inf\t\n");
        else
            BM_TRY(print(vocab, &found, out));
    }
    return BM_OK;
}

static bm_status run(char **argv, FILE *out, double *seconds)
{
    bm_language_settings said = bm_language_defaults();
    bm_decoder_settings set;
    bm_language *language = NULL;
    bm_vocab *vocab = NULL;
    bm_decoder *d = NULL;
    char *data = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(argv[1], LARGEST_FILE, &data, &size));
    BM_TRY_DONE(bm_vocab_read(&vocab, argv[2], false));
    set = bm_decoder_defaults(bm_vocab_size(vocab), bm_vocab_space(vocab));
    set.beam = strtoul(argv[4], NULL, 10);
    set.threshold = strtod(argv[5], NULL);
    set.symbol_threshold = strtod(argv[6], NULL);
    if (strcmp(argv[3], "-") != 0) {
        said.lm = argv[3];
        said.lm_weight = strtod(argv[7], NULL);
        said.word_score = strtod(argv[8], NULL);
        said.unknown_score = strtod(argv[9], NULL);
        BM_TRY_DONE(bm_language_open(&language, &said, vocab));
        set.language = language;
    }
    BM_TRY_DONE(bm_decoder_new(&d, &set));
    status = search(d, vocab, data, size, seconds, out);
done:
    bm_decoder_free(d);
    bm_language_close(language);
    bm_vocab_free(vocab);
    free(data);
    return status;
}

int main(int argc, char **argv)
{
    FILE *out = tmpfile();
    double seconds = 0;
    bm_status status = BM_OK;
    int c = 0;

    if (argc != 10 || out == NULL) {
        fputs("usage: bmuf_search POSTERIORS VOCAB LM|- BEAM THRESHOLD "
              "LABEL-THRESHOLD LM-WEIGHT WORD-SCORE UNKNOWN-SCORE\n",
              stderr);
        return 64;
    }
    status = run(argv, out, &seconds);
    if (status != BM_OK)
        fprintf(stderr, "bmuf_search: %s\n", bm_last_message());
    printf("%.6f\n", seconds);
    rewind(out);
    while ((c = getc(out)) != EOF)
        putchar(c);
    fclose(out);
    return bm_status_exit(status);
}
