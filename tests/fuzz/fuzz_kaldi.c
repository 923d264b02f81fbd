/* fuzz_kaldi.c - archives of Kaldi's, as alignments and as matrices one after
 * the other, and data directories whose files are the input, cut at lines "=". */
#include "core/finite.h"
#include "io/import/files/feature_files.h"
#include "io/import/files/kaldi_cmvn.h"
#include "io/import/files/kaldi_file.h"
#include "io/import/frame_classes.h"
#include "io/import/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_RATIO = 1032 }; /* of gzip */

static void read_matrices(const char *path, size_t size)
{
    bm_kaldi_file f = {0};
    bm_frames x = {0};
    bm_problem problem = {0};
    char key[256] = "";

    FUZZ_RULE(bm_kaldi_open(&f, path) == BM_OK);
    while (!bm_problem_is(&problem)) {
        FUZZ_RULE(bm_kaldi_key(&f, key, sizeof key, &problem) == BM_OK);
        if (key[0] == '\0' || bm_problem_is(&problem))
            break;
        FUZZ_RULE(bm_kaldi_matrix(&f, &x, &problem) == BM_OK);
        if (!bm_problem_is(&problem))
            FUZZ_RULE(x.n > 0 && x.dim > 0 && x.n * x.dim <= MOST_RATIO * size);
    }
    bm_kaldi_close(&f);
    bm_frames_free(&x);
}

static void take_moments(void *self, size_t speaker, const double *moments)
{
    (void)self;
    FUZZ_RULE(speaker < 2 && moments[0] >= 1 && isfinite(moments[2]));
}

/* Statistics, after a key, and a list of them beside the archive. */
static void read_statistics(const char *path, const char *list)
{
    static const char *const names[] = {"a", "b"};
    bm_kaldi_file f = {0};
    bm_doubles x = {0};
    bm_problem problem = {0};
    char key[256] = "";

    FUZZ_RULE(bm_kaldi_open(&f, path) == BM_OK);
    FUZZ_RULE(bm_kaldi_key(&f, key, sizeof key, &problem) == BM_OK);
    if (!bm_problem_is(&problem))
        FUZZ_RULE(bm_kaldi_doubles(&f, &x, &problem) == BM_OK);
    bm_kaldi_close(&f);
    free(x.x);
    (void)!bm_kaldi_cmvn_read(list, names, 2, 2, take_moments, NULL);
}

static void read_classes(const char *path)
{
    bm_frame_classes *c = NULL;

    if (bm_frame_classes_read(&c, path, false) == BM_OK)
        FUZZ_RULE(bm_frame_classes_highest(c) >= 0);
    bm_frame_classes_free(c);
}

/* Writes the parts of the input to files, in this order. */
static void write_directory(const char *directory, const uint8_t *data,
                            size_t size)
{
    static const char *const names[] = {"wav.scp", "segments", "text",
                                        "utt2spk"};

    (void)mkdir(directory, 0700);
    for (size_t i = 0; i < 4; i++) {
        char path[400];
        const uint8_t *end = size > 2 ? memchr(data, '=', size) : NULL;
        size_t n = end != NULL ? (size_t)(end - data) : size;
        FILE *file = NULL;

        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
        if (size > 0) {
            file = fopen(path, "wb");
            FUZZ_RULE(file != NULL && fwrite(data, 1, n, file) == n);
            FUZZ_RULE(fclose(file) == 0);
        }
        n += end != NULL;
        n += n < size && data[n] == '\n';
        data += n;
        size -= n;
    }
}

static void read_directory(const char *directory, const char *kind)
{
    bm_manifest *m = NULL;

    if (bm_manifest_read(&m, directory, kind, 100, BM_MANIFEST_PIPES) != BM_OK)
        return;
    for (size_t k = 0; k < bm_manifest_size(m); k++) {
        bm_manifest_row row = bm_manifest_at(m, k);

        FUZZ_RULE(strlen(row.id) > 0 && strlen(row.path) > 0);
        FUZZ_RULE(isfinite(row.start) && row.start >= 0);
        FUZZ_RULE(isfinite(row.duration) && row.duration >= 0);
    }
    bm_manifest_free(m);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    const char *directory = fuzz_path("data");
    char list[300];

    read_matrices(path, size);
    read_classes(path);
    {
        const char *cmvn = fuzz_path("cmvn.scp");
        FILE *file = fopen(cmvn, "wb");

        FUZZ_RULE(file != NULL);
        fprintf(file, "a x.ark:2\n"); /* the input */
        FUZZ_RULE(fwrite(data, 1, size, file) == size && fclose(file) == 0);
        read_statistics(path, cmvn);
    }
    write_directory(directory, data, size);
    read_directory(directory, "audio");
    snprintf(list, sizeof list, "%s/feats.scp", directory);
    FUZZ_RULE(rename(path, list) == 0);
    read_directory(directory, "feats");
    snprintf(list, sizeof list, "scp:%s/feats.scp", directory);
    read_classes(list);
}

const fuzz_target fuzz_kaldi = {"kaldi", "x.ark", run, NULL};
