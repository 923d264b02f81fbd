/* Memory that ranks of one host share, reserved while signals arrive. */
#include "comm/shared_memory.h"
#include "tests/support/support.h"

#include <errno.h>
#include <sys/types.h>

static int calls;

int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);

/* A signal interrupts the first two calls. */
int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
    calls++;
    return calls < 3 ? EINTR : __real_posix_fallocate(fd, offset, size);
}

static void test_an_interrupted_reservation_is_repeated(void **state)
{
    bm_comm *comm = *state;
    bm_shared_memory *memory = NULL;

    assert_ok(bm_shared_memory_open(&memory, comm, 4096));
    assert_int_equal(calls, 3);
    assert_true(bm_shared_memory_available(memory));
    bm_shared_memory_close(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_an_interrupted_reservation_is_repeated, open_comm, close_comm),
    };
    return RUN_GROUP_MPI("shared_memory", tests);
}
