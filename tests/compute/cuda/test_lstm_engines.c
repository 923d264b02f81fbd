/*
 * Which engine computes an LSTM or a convolution on a GPU: chosen once, written
 * down, and taken by whoever comes later. With "cudnn" as second argument there
 * is cuDNN to choose.
 */
#define _DEFAULT_SOURCE /* RTLD_NOLOAD */
#include "compute/backend.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *backend = "cpu";
static bool with_cudnn;

static void ask(size_t H, bm_status expected)
{
    int32_t frames[] = {20, 7};
    bm_lstm l = {.n_in = 3, .n_hidden = H, .directions = 2};
    bm_extent e = {20, 2, frames};
    bm_backend *be = NULL;

    assert_ok(bm_backend_open(&be, backend, 0));
    assert_true((bm_lstm_kept(be, &l, e) > 0) == (expected == BM_OK));
    assert_int_equal(bm_sync(be), expected);
    bm_backend_close(be);
}

/* The line about H units, without its end; free(). */
static char *line_of(const char *path, size_t H)
{
    char words[64];
    size_t size = 0;
    char *text = slurp(path, &size), *line = NULL, *begin = NULL;

    snprintf(words, sizeof words, "\tlstm H %zu D 3 R 2 B 2 T 32 ", H);
    begin = strstr(text, words);
    assert_non_null(begin);
    assert_null(strstr(begin + 1, words)); /* once */
    while (begin > text && begin[-1] != '\n')
        begin--;
    line = strndup(begin, strcspn(begin, "\n"));
    free(text);
    return line;
}

/* A file that is written again is another one. */
static ino_t number(const char *path)
{
    struct stat about;

    assert_int_equal(stat(path, &about), 0);
    return about.st_ino;
}

static void replace(const char *path, const char *old, const char *with)
{
    size_t size = 0;
    char *text = slurp(path, &size), changed[4096];
    char *at = strstr(text, old);

    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, with,
             at + strlen(old));
    spill(path, changed, strlen(changed));
    free(text);
}

static void test_choice_is_written_once(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "engines");
    char *line = NULL;
    ino_t first = 0;
    size_t tabs = 0;

    (void)state;
    setenv("BMUF_ENGINES", path, 1);
    ask(4, BM_OK);
    line = line_of(path, 4);
    for (const char *at = line; *at != '\0'; at++)
        tabs += *at == '\t';
    assert_int_equal(tabs, 4);
    assert_non_null(strstr(line, "steps"));
    first = number(path);
    ask(4, BM_OK);
    assert_true(number(path) == first);
    ask(5, BM_OK);
    assert_false(number(path) == first);
    free(line);
    line = line_of(path, 5);
    free(line);
    free(line_of(path, 4)); /* still there */
    scratch_close(&s);
}

static void test_unknown_engine_is_timed_anew(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "engines");
    char *line = NULL;
    ino_t first = 0;

    (void)state;
    setenv("BMUF_ENGINES", path, 1);
    ask(4, BM_OK);
    replace(path, "precision 0\t", "precision 0\tno");
    first = number(path);
    ask(4, BM_OK);
    assert_false(number(path) == first);
    line = line_of(path, 4);
    assert_null(strstr(line, "precision 0\tno"));
    free(line);
    scratch_close(&s);
}

static void test_damaged_lines_are_ignored(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "engines");
    const char *damaged = "emul\nno\ttabs\n\t\t\t\t\t\t\t\na\tb\tc\td\te";
    size_t size = 0;
    char *text = NULL;

    (void)state;
    setenv("BMUF_ENGINES", path, 1);
    spill(path, damaged, strlen(damaged));
    ask(4, BM_OK);
    free(line_of(path, 4));
    text = slurp(path, &size);
    assert_null(strstr(text, "emul\n"));
    assert_non_null(strstr(text, "a\tb\tc\td\te\n")); /* nothing of ours */
    free(text);
    scratch_close(&s);
}

static void test_folders_are_made(void **state)
{
    scratch s = scratch_open();
    const char *folder = scratch_file(&s, "bmuf");
    char path[500], beside[520];

    (void)state;
    unsetenv("BMUF_ENGINES");
    setenv("XDG_CACHE_HOME", s.path, 1);
    ask(4, BM_OK);
    snprintf(path, sizeof path, "%s/engines", folder);
    snprintf(beside, sizeof beside, "%s.lock", path);
    free(line_of(path, 4));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(beside), 0);
    unsetenv("XDG_CACHE_HOME");
    scratch_close(&s);
}

static void test_no_place_for_a_file_is_no_failure(void **state)
{
    (void)state;
    setenv("BMUF_ENGINES", "/dev/null/engines", 1);
    ask(4, BM_OK);
}

static void test_engine_can_be_named(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "engines");

    (void)state;
    setenv("BMUF_ENGINES", path, 1);
    setenv("BMUF_LSTM", "steps", 1);
    ask(4, BM_OK);
    assert_int_equal(scratch_count(&s, false), 0); /* nothing to choose */
    setenv("BMUF_LSTM", "stairs", 1);
    ask(4, BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "BMUF_LSTM: no engine 'stairs'"));
    setenv("BMUF_LSTM", "cluster", 1); /* never in fp32 */
    ask(8, BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_error(), "BMUF_LSTM=cluster: "));
    unsetenv("BMUF_LSTM");
    scratch_close(&s);
}

/* The emulated cuDNN's count of what it was asked for; NULL: it is another. */
static const unsigned long *asked(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, "bm_fake_cudnn_asked") : NULL;
}

static void convolve(bm_status expected)
{
    static const float w[3 * 3 * 2 + 2];
    static const float x[20 * 2 * 5];
    int32_t frames[] = {20, 7};
    bm_conv c = {5, 1, 2, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL};
    bm_extent e = {20, 2, frames};
    bm_backend *be = NULL;
    float *there = NULL, *in = NULL, *y = NULL, *work = NULL;

    assert_ok(bm_backend_open(&be, backend, 0));
    there = place(be, w, sizeof w / sizeof w[0]);
    in = place(be, x, sizeof x / sizeof x[0]);
    c.w = there;
    c.b = there + 18;
    assert_ok(bm_alloc(be, 2 * sizeof x / sizeof x[0], &y));
    assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
    for (int i = 0; i < 2; i++) {
        unsigned long before = asked() != NULL ? *asked() : 0;

        bm_conv_forward(be, &c, e, e, in, y, work);
        assert_int_equal(bm_sync(be), expected);
        if (i > 0 && asked() != NULL) /* its answers are kept */
            assert_true(*asked() == before);
    }
    bm_free(be, there);
    bm_free(be, in);
    bm_free(be, y);
    bm_free(be, work);
    bm_backend_close(be);
}

static void test_convolutions_have_engines_too(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "engines");
    const char *words = "\tconv H 5 C 1 N 2 time 3/1 1 1 rows 3/1 1 1 B 2 T 32";
    size_t size = 0;
    char *text = NULL, *line = NULL;
    ino_t first = 0;

    (void)state;
    setenv("BMUF_ENGINES", path, 1);
    convolve(BM_OK);
    text = slurp(path, &size);
    line = strstr(text, words);
    assert_non_null(line);
    assert_null(strstr(line + 1, words)); /* once */
    assert_non_null(strstr(line, "im2col"));
    if (with_cudnn)
        assert_non_null(strstr(line, "cudnn "));
    first = number(path);
    convolve(BM_OK);
    assert_true(number(path) == first);
    ask(4, BM_OK); /* side by side */
    free(line_of(path, 4));
    setenv("BMUF_CONV", "stairs", 1);
    convolve(BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "BMUF_CONV: no engine 'stairs'"));
    if (with_cudnn) {
        setenv("BMUF_CONV", "cudnn", 1);
        convolve(BM_OK);
    }
    unsetenv("BMUF_CONV");
    free(text);
    scratch_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice_is_written_once),
        cmocka_unit_test(test_unknown_engine_is_timed_anew),
        cmocka_unit_test(test_damaged_lines_are_ignored),
        cmocka_unit_test(test_folders_are_made),
        cmocka_unit_test(test_no_place_for_a_file_is_no_failure),
        cmocka_unit_test(test_engine_can_be_named),
        cmocka_unit_test(test_convolutions_have_engines_too),
    };

    if (argc > 1)
        backend = argv[1];
    with_cudnn = argc > 2 && strcmp(argv[2], "cudnn") == 0;
    unsetenv("BMUF_LSTM");
    unsetenv("BMUF_CONV");
    if (!have_backend(backend))
        return SKIPPED;
    if (with_cudnn) {
        setenv("BMUF_CONV", "cudnn", 1);
        if (!have_convolution(backend, BM_FP32))
            return SKIPPED;
        unsetenv("BMUF_CONV");
    }
    return RUN_GROUP("lstm_engines", tests);
}
