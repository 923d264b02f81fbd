/* fuzz_features.c - features of other programs: NumPy arrays and archives, and
 * files of HTK and Sphinx. */
#include "core/finite.h"
#include "io/import/files/feature_files.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RATIO = 1032 }; /* of deflate */

static void read_as(const char *path, size_t size)
{
    bm_frames x = {0};
    bm_problem problem = {0};

    FUZZ_RULE(bm_feature_file_read(path, 13, &x, &problem) == BM_OK);
    if (!bm_problem_is(&problem)) {
        FUZZ_RULE(x.n > 0 && x.dim > 0 && x.n * x.dim <= MOST_RATIO * size);
        FUZZ_RULE(bm_all_finite(x.x, x.n * x.dim));
    }
    bm_frames_free(&x);
}

/* The length of an array's header, which mutation of its text changes. */
static size_t repair(uint8_t *data, size_t size, size_t room)
{
    const uint8_t *end = size > 12 ? memchr(data + 10, '\n', size - 10) : NULL;

    (void)room;
    if (end == NULL || memcmp(data, "\x93NUMPY\1", 7) != 0)
        return size;
    data[8] = (uint8_t)(end + 1 - data - 10);
    data[9] = (uint8_t)((end + 1 - data - 10) >> 8);
    return size;
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    (void)data;
    read_as(path, size);
    FUZZ_RULE(rename(path, fuzz_path("x.mfc")) == 0);
    read_as(fuzz_path("x.mfc"), size);
    FUZZ_RULE(rename(fuzz_path("x.mfc"), fuzz_path("x.npz")) == 0);
    read_as(fuzz_path("x.npz"), size);
}

const fuzz_target fuzz_features = {"features", "x.npy", run, repair};
