/*
 * What a plugin lacks is told in one line. Each attempt is that of a process of
 * its own, as what is loaded stays loaded.
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
    const char *plugins;      /* where it is looked for */
    bool driver;              /* the device's library is there */
    const char *lib, *prefix; /* FAKE_LIB, FAKE_PREFIX; NULL: not set */
} attempt;

typedef struct finding {
    char message[2000]; /* "" if it opened */
    int status;
    int of_cuda; /* libraries that are loaded afterwards */
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

static void assert_tells(const finding *f, bm_status status, const char *words)
{
    if (f->status != (int)status || strstr(f->message, words) == NULL)
        fail_msg("status %d: '%s', not '%s'", f->status, f->message, words);
    assert_null(strchr(f->message, '\n'));
}

static void test_a_plugin_with_all_it_needs_opens(void **state)
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

static void test_a_machine_without_driver_is_told(void **state)
{
    finding f = find((attempt){"whole", BMUF_FAKES, false,
                               BMUF_FAKES "/arithmetic/lib", NULL});

    (void)state;
    assert_tells(&f, BM_ERR_DEVICE,
                 "no whole here: no driver: libfake_driver.so.1: ");
}

static void test_places_of_a_missing_library_are_told(void **state)
{
    finding f =
        find((attempt){"whole", BMUF_FAKES, true, "/nowhere:/nor/here", NULL});

    (void)state;
    assert_tells(&f, BM_ERR_DEVICE,
                 "no whole here: there is no libfake_arithmetic.so.1; looked "
                 "in $FAKE_LIB = /nowhere:/nor/here, where the system looks, "
                 "$FAKE_PREFIX/l*b (not set)");
}

/* What can be used comes first, even if what cannot lies nearer. */
static void test_a_damaged_library_is_told(void **state)
{
    char nearest[512], both[2000];
    finding f;

    (void)state;
    write_text("libfake_arithmetic.so.1", "this is no library");
    snprintf(nearest, sizeof nearest, "%s", in_folder(""));
    snprintf(both, sizeof both, "%s:%s", nearest, BMUF_FAKES "/arithmetic/lib");
    f = find((attempt){"whole", BMUF_FAKES, true, nearest, NULL});
    assert_tells(&f, BM_ERR_DEVICE, "libfake_arithmetic.so.1 cannot be used: ");
    assert_non_null(strstr(f.message, nearest));
    f = find((attempt){"whole", BMUF_FAKES, true, both, NULL});
    assert_string_equal(f.message, "");
}

static void test_a_plugin_that_is_not_there_is_told(void **state)
{
    finding f = find((attempt){.name = "abacus", .plugins = BMUF_FAKES});

    (void)state;
    assert_tells(&f, BM_ERR_UNSUPPORTED,
                 "no abacus here: there is no " BMUF_FAKES
                 "/libbmuf_abacus.so");
    f = find((attempt){.name = "abacus"});
    assert_tells(&f, BM_ERR_UNSUPPORTED, "/libbmuf_abacus.so"); /* beside us */
    f = find((attempt){.name = "../whole", .plugins = BMUF_FAKES});
    assert_tells(&f, BM_ERR_CONFIG, "'../whole' names no backend");
}

static void test_a_damaged_plugin_is_told(void **state)
{
    finding f;

    (void)state;
    write_text("libbmuf_text.so", "this is no library");
    f = find((attempt){.name = "text", .plugins = in_folder("")});
    assert_tells(&f, BM_ERR_UNSUPPORTED, "no text here: ");
    assert_non_null(strstr(f.message, "libbmuf_text.so"));
}

static void test_a_library_that_is_no_plugin_is_told(void **state)
{
    finding f = find((attempt){.name = "bare", .plugins = BMUF_FAKES});

    (void)state;
    assert_tells(&f, BM_ERR_UNSUPPORTED,
                 "is no plugin of this program; it has no bm_plugin_bare");
}

static void test_a_plugin_of_another_version_is_told(void **state)
{
    finding f = find((attempt){.name = "old", .plugins = BMUF_FAKES});

    (void)state;
    assert_tells(&f, BM_ERR_UNSUPPORTED,
                 "libbmuf_old.so is of another version of this program");
}

/* The real one, where it was built and there is no driver. */
static void test_without_a_driver_nothing_of_cuda_is_loaded(void **state)
{
    (void)state;
    assert_int_equal(cuda_libraries(), 0);
#ifdef BMUF_CUDA_PLUGIN
    finding f = find((attempt){.name = "cuda", .plugins = BMUF_CUDA_PLUGIN});

    if (f.status == BM_OK || strstr(f.message, "no driver") == NULL)
        skip();
    assert_tells(&f, BM_ERR_DEVICE, "no cuda here: no driver: libcuda.so.1: ");
    assert_int_equal(f.of_cuda, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plugin_with_all_it_needs_opens),
        cmocka_unit_test(test_a_machine_without_driver_is_told),
        cmocka_unit_test(test_places_of_a_missing_library_are_told),
        cmocka_unit_test(test_a_damaged_library_is_told),
        cmocka_unit_test(test_a_plugin_that_is_not_there_is_told),
        cmocka_unit_test(test_a_damaged_plugin_is_told),
        cmocka_unit_test(test_a_library_that_is_no_plugin_is_told),
        cmocka_unit_test(test_a_plugin_of_another_version_is_told),
        cmocka_unit_test(test_without_a_driver_nothing_of_cuda_is_loaded),
    };

    return cmocka_run_group_tests_name("plugin", tests, folder_make,
                                       folder_remove);
}
