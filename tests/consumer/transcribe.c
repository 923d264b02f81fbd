/*
 * transcribe.c - somebody else's program that turns speech into words with the
 * installed library: reads samples of 16 bits (little-endian, one channel) from
 * stdin, and prints the words with their times in seconds.
 *
 *     sox my.wav -t s16 -c 1 -r 16000 - | transcribe MODEL 16000
 */
#include "recognise/transcriber.h"

#include <stdio.h>
#include <stdlib.h>

/* *x [*n]: free(). */
static bm_status read_samples(float **x, size_t *n)
{
    unsigned char sample[2];
    size_t room = 0;

    while (fread(sample, 2, 1, stdin) == 1) {
        int value = sample[0] | sample[1] << 8;

        if (*n == room) {
            float *grown =
                realloc(*x, (room = 2 * room + 4096) * sizeof *grown);
            if (grown == NULL)
                return BM_FAIL(BM_ERR_MEMORY, "no memory for the samples");
            *x = grown;
        }
        (*x)[(*n)++] = (float)(value < 32768 ? value : value - 65536) / 32768;
    }
    return BM_OK;
}

static void print(const bm_reading *r)
{
    for (size_t i = 0; i < r->n_words; i++)
        printf("%.2f %.2f %s\n", r->words[i].start, r->words[i].end,
               r->words[i].text);
}

int main(int argc, char **argv)
{
    bm_transcriber *t = NULL;
    bm_transcript *transcript = NULL;
    float *x = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    if (argc != 3) {
        fprintf(stderr, "usage: transcribe MODEL RATE <samples\n");
        return 64;
    }
    BM_TRY_DONE(bm_transcriber_open(&t, argv[1], NULL));
    BM_TRY_DONE(read_samples(&x, &n));
    BM_TRY_DONE(bm_transcriber_samples(t, x, n, strtol(argv[2], NULL, 10),
                                       &transcript));
    print(&transcript->readings[0]);
done:
    if (status != BM_OK)
        fprintf(stderr, "%s\n", bm_last_message());
    bm_transcript_free(transcript);
    bm_transcriber_close(t);
    free(x);
    return bm_status_exit(status);
}
