/*
 * Every operation of compute/operations.h against its definition, in plain
 * loops over doubles, for some shapes, in every precision: on the CPU with
 * every instruction set, on one thread and on three, or on the device that the
 * first argument names. Gradients are compared with central differences.
 *
 * The rows are in operations/; an operation without a row fails a test.
 */
#include "tests/compute/operations/subjects.h"

#include <stdlib.h>
#include <string.h>

static bm_backend *device; /* NULL: the CPU */

static const subjects *const groups[] = {
#define X(name) &name##_subjects,
    OPERATION_SUBJECTS(X)
#undef X
};

static void test_operations_match_their_definitions(void **state)
{
    (void)state;
    FOR_EACH (g, groups)
        for (size_t i = 0; i < groups[g]->n; i++) {
            print_message("%s\n", groups[g]->rows[i].operations);
            check_subject(&groups[g]->rows[i], device);
        }
}

static bool covers(const subject *s, const char *name)
{
    size_t n = strlen(name);
    const char *at = s->operations;

    for (; (at = strstr(at, name)) != NULL; at += n)
        if ((at == s->operations || at[-1] == ' ') &&
            (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static void test_every_operation_has_a_row(void **state)
{
    static const char *const names[] = {
#define BM_OPERATION(name, ...) #name,
#define BM_SIZE_OPERATION       BM_OPERATION
#include "compute/operations.h"
    };

    (void)state;
    FOR_EACH (i, names) {
        bool covered = false;

        FOR_EACH (g, groups)
            for (size_t k = 0; k < groups[g]->n; k++)
                covered = covered || covers(&groups[g]->rows[k], names[i]);
        if (!covered)
            fail_msg("no row for operation %s", names[i]);
    }
}

static void test_cpu_lacks_only_device_operations(void **state)
{
    const bm_backend_ops *ops = cpu->ops;

    (void)state;
#define BM_OPERATION(name, ...)        assert_true(ops->name != NULL);
#define BM_SIZE_OPERATION              BM_OPERATION
#define BM_DEVICE_OPERATION(name, ...) assert_true(ops->name == NULL);
#include "compute/operations.h"
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_has_a_row),
        cmocka_unit_test(test_cpu_lacks_only_device_operations),
        cmocka_unit_test(test_operations_match_their_definitions),
    };

    int failed = 0;

    if (argc > 1 && !have_backend(argv[1]))
        return SKIPPED;
    if (argc > 1 && bm_backend_open(&device, argv[1], 0) != BM_OK)
        return EXIT_FAILURE;
    failed =
        cmocka_run_group_tests_name("operations", tests, open_cpu, close_cpu);
    bm_backend_close(device);
    return failed;
}
