/*
 * Whatever a plugin lacks is reported in one line. Each attempt runs in a
 * process of its own, since plugins and libraries stay loaded.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "compute/backend.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct attempt {
    const char *name;         /* of the backend */
    const char *plugins;      /* BMUF_PLUGINS; NULL: not set */
    bool driver;              /* the device's library is there */
    const char *lib, *prefix; /* FAKE_LIB, FAKE_PREFIX; NULL: not set */
} attempt;

typedef struct finding {
    char message[2000]; /* "" if it opened */
    int status;
    int of_cuda; /* libraries of CUDA that are loaded afterwards */
} finding;

static int count_cuda(struct dl_phdr_info *info, size_t size, void *n)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;

    (void)size;
    *(int *)n += strncmp(name, "libcuda", 7) == 0 ||
                 strncmp(name, "libcublas", 9) == 0 ||
                 strncmp(name, "libcudnn", 8) == 0 ||
                 strncmp(name, "libnccl", 7) == 0;
    return 0;
}

static int cuda_libraries(void)
{
    int n = 0;

    dl_iterate_phdr(count_cuda, &n);
    return n;
}

static void set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void try_it(const attempt *a, finding *f)
{
    bm_backend *be = NULL;

    set("BMUF_PLUGINS", a->plugins);
    set("FAKE_LIB", a->lib);
    set("FAKE_PREFIX", a->prefix);
    if (a->driver &&
        dlopen(BMUF_FAKES "/driver/lib/libfake_driver.so.1", RTLD_NOW) == NULL)
        _exit(1);
    f->status = bm_backend_open(&be, a->name, 0);
    if (f->status != BM_OK)
        snprintf(f->message, sizeof f->message, "%s", bm_last_message());
    f->of_cuda = cuda_libraries();
    bm_backend_close(be);
}

static finding find(attempt a)
{
    finding f = {.status = -1};
    int ends[2], state = 0;
    pid_t child = 0;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        try_it(&a, &f);
        _exit(write(ends[1], &f, sizeof f) != sizeof f);
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_int_equal(state, 0);
    assert_int_equal(read(ends[0], &f, sizeof f), sizeof f);
    close(ends[0]);
    close(ends[1]);
    return f;
}

static void assert_fails(const finding *f, bm_status status, const char *words)
{
    if (f->status != (int)status || strstr(f->message, words) == NULL)
        fail_msg("status %d: '%s', not '%s'", f->status, f->message, words);
    assert_null(strchr(f->message, '\n'));
}

static void test_plugin_with_all_libraries_opens(void **state)
{
    finding f = find((attempt){"whole", BMUF_FAKES, true,
                               BMUF_FAKES "/arithmetic/lib", NULL});

    (void)state;
    assert_string_equal(f.message, "");
    f = find((attempt){"whole", BMUF_FAKES, true,
                       "/nowhere::" BMUF_FAKES "/arithmetic/lib:/nor/here",
                       NULL});
    assert_string_equal(f.message, "");
    f = find(
        (attempt){"whole", BMUF_FAKES, true, NULL, BMUF_FAKES "/arithmetic"});
    assert_string_equal(f.message, "");
}

static void test_missing_driver_is_reported(void **state)
{
    finding f = find((attempt){"whole", BMUF_FAKES, false,
                               BMUF_FAKES "/arithmetic/lib", NULL});

    (void)state;
    assert_fails(
        &f, BM_ERR_DEVICE,
        "backend whole is not available: no driver: libfake_driver.so.1: ");
}

static void test_places_of_a_missing_library_are_reported(void **state)
{
    finding f =
        find((attempt){"whole", BMUF_FAKES, true, "/nowhere:/nor/here", NULL});

    (void)state;
    assert_fails(&f, BM_ERR_DEVICE,
                 "backend whole is not available: libfake_arithmetic.so.1 was "
                 "not found; searched: $FAKE_LIB = /nowhere:/nor/here, the "
                 "system's search path, "
                 "$FAKE_PREFIX/l*b (not set)");
}

/* A place with a damaged library is passed over if another has a good one. */
static void test_damaged_library_is_reported(void **state)
{
    char nearest[512], both[2000];
    finding f;

    (void)state;
    write_text("libfake_arithmetic.so.1", "this is no library");
    snprintf(nearest, sizeof nearest, "%s", in_folder(""));
    snprintf(both, sizeof both, "%s:%s", nearest, BMUF_FAKES "/arithmetic/lib");
    f = find((attempt){"whole", BMUF_FAKES, true, nearest, NULL});
    assert_fails(&f, BM_ERR_DEVICE,
                 "libfake_arithmetic.so.1 cannot be loaded: ");
    assert_non_null(strstr(f.message, nearest));
    f = find((attempt){"whole", BMUF_FAKES, true, both, NULL});
    assert_string_equal(f.message, "");
}

static void test_missing_plugin_is_reported(void **state)
{
    finding f = find((attempt){.name = "abacus", .plugins = BMUF_FAKES});

    (void)state;
    assert_fails(&f, BM_ERR_UNSUPPORTED,
                 "backend abacus is not available: " BMUF_FAKES
                 "/libbmuf_abacus.so does not exist");
    f = find((attempt){.name = "abacus"});
    assert_fails(&f, BM_ERR_UNSUPPORTED, "/libbmuf_abacus.so"); /* beside us */
    f = find((attempt){.name = "../whole", .plugins = BMUF_FAKES});
    assert_fails(&f, BM_ERR_CONFIG, "'../whole' is not the name of a backend");
}

static void test_damaged_plugin_is_reported(void **state)
{
    finding f;

    (void)state;
    write_text("libbmuf_text.so", "this is no library");
    f = find((attempt){.name = "text", .plugins = in_folder("")});
    assert_fails(&f, BM_ERR_UNSUPPORTED, "backend text is not available: ");
    assert_non_null(strstr(f.message, "libbmuf_text.so"));
}

static void test_library_without_the_plugin_symbol_is_reported(void **state)
{
    finding f = find((attempt){.name = "bare", .plugins = BMUF_FAKES});

    (void)state;
    assert_fails(&f, BM_ERR_UNSUPPORTED,
                 "is not a plugin of this program (no symbol bm_plugin_bare)");
}

static void test_plugin_of_another_version_is_reported(void **state)
{
    finding f = find((attempt){.name = "old", .plugins = BMUF_FAKES});

    (void)state;
    assert_fails(&f, BM_ERR_UNSUPPORTED,
                 "libbmuf_old.so belongs to another version of this program");
}

/* The plugin for CUDA, if it was built and the machine has no driver. */
static void test_without_a_driver_nothing_of_cuda_is_loaded(void **state)
{
    (void)state;
    assert_int_equal(cuda_libraries(), 0);
#ifdef BMUF_CUDA_PLUGIN
    finding f = find((attempt){.name = "cuda", .plugins = BMUF_CUDA_PLUGIN});

    if (f.status == BM_OK || strstr(f.message, "no driver") == NULL)
        skip();
    assert_fails(&f, BM_ERR_DEVICE,
                 "backend cuda is not available: no driver: libcuda.so.1: ");
    assert_int_equal(f.of_cuda, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin_with_all_libraries_opens),
        cmocka_unit_test(test_missing_driver_is_reported),
        cmocka_unit_test(test_places_of_a_missing_library_are_reported),
        cmocka_unit_test(test_damaged_library_is_reported),
        cmocka_unit_test(test_missing_plugin_is_reported),
        cmocka_unit_test(test_damaged_plugin_is_reported),
        cmocka_unit_test(test_library_without_the_plugin_symbol_is_reported),
        cmocka_unit_test(test_plugin_of_another_version_is_reported),
        cmocka_unit_test(test_without_a_driver_nothing_of_cuda_is_loaded),
    };

    return cmocka_run_group_tests_name("plugin", tests, folder_make,
                                       folder_remove);
}
