/*
 * The emulated instructions of a warp against the PTX manual: "Matrix fragments
 * for mma.m16n8k16 with floating point type" and "ldmatrix", in its own terms;
 * and graphs against the runtime's.
 * What tests of kernels say rests on these.
 */
#include "core/rng.h"
#include "tests/emulation/probe.h"
#include "tests/fakes/emulated.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static cudaError_t (*multiply)(cudaStream_t, const uint32_t *, const uint32_t *,
                               float *);
static cudaError_t (*matrices)(cudaStream_t, const uint16_t *, uint32_t *,
                               uint32_t *, uint32_t *, uint16_t *);
static void *(*multiply_kernel)(void);
static cudaError_t (*synchronize)(void);

/* The runtime that the plugin has. */
static struct {
/* clang-format off */
#define RUNTIME(X) \
    X(StreamCreate) X(StreamDestroy) X(StreamBeginCapture) \
    X(StreamEndCapture) X(StreamSynchronize) X(StreamWaitEvent) \
    X(StreamQuery) X(EventRecord) X(EventSynchronize) X(EventCreate) \
    X(EventCreateWithFlags) X(EventDestroy) X(EventQuery) X(EventElapsedTime) \
    X(Malloc) X(Free) X(MemcpyAsync) X(MemsetAsync) X(DeviceSynchronize) \
    X(HostRegister) X(HostUnregister) X(LaunchKernelExC) \
    X(GraphInstantiate) X(GraphLaunch) X(GraphExecDestroy) X(GraphDestroy)
/* clang-format on */
#define X(name) __typeof__(cuda##name) *name;
    RUNTIME(X)
#undef X
} cuda;

/* Memory of the device, zeros, which the host can read and write here. */
static void *room(size_t bytes)
{
    void *x = NULL;

    assert_int_equal(cuda.Malloc(&x, bytes), 0);
    memset(x, 0, bytes);
    return x;
}

/* A whole number as bf16. */
static uint32_t bf16(int x)
{
    float y = (float)x;
    uint32_t bits;

    memcpy(&bits, &y, sizeof bits);
    return bits >> 16;
}

/* -8 .. 7: products and their sums are exact. */
static int small(size_t i)
{
    return (int)(bm_rng_at(5, i) >> 60) - 8;
}

static void test_a_product_has_the_layout_of_the_manual(void **state)
{
    int A[16][16], B[16][8], C[16][8];
    uint32_t(*a)[4] = room(32 * sizeof *a), (*b)[2] = room(32 * sizeof *b);
    float(*c)[4] = room(32 * sizeof *c);

    (void)state;
    for (size_t i = 0; i < 256; i++)
        A[i / 16][i % 16] = small(i);
    for (size_t i = 0; i < 128; i++) {
        B[i / 8][i % 8] = small(300 + i);
        C[i / 8][i % 8] = small(500 + i);
    }
    for (int lane = 0; lane < 32; lane++) {
        int group = lane >> 2, thread = lane % 4;

        for (int i = 0; i < 8; i++) {
            int row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
            int col = thread * 2 + (i & 1) + (i < 4 ? 0 : 8);
            a[lane][i / 2] |= bf16(A[row][col]) << 16 * (i % 2);
        }
        for (int i = 0; i < 4; i++) {
            int row = thread * 2 + (i & 1) + (i < 2 ? 0 : 8);
            b[lane][i / 2] |= bf16(B[row][group]) << 16 * (i % 2);
        }
        for (int i = 0; i < 4; i++)
            c[lane][i] =
                (float)C[i < 2 ? group : group + 8][thread * 2 + (i & 1)];
    }
    assert_int_equal(multiply(0, a[0], b[0], c[0]), 0);
    assert_int_equal(synchronize(), 0);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            int row = (lane >> 2) + (i < 2 ? 0 : 8);
            int col = lane % 4 * 2 + (i & 1), sum = C[row][col];

            for (int k = 0; k < 16; k++)
                sum += A[row][k] * B[k][col];
            assert_true(c[lane][i] == (float)sum);
        }
    cuda.Free(a);
    cuda.Free(b);
    cuda.Free(c);
}

static void test_matrices_have_the_layout_of_the_manual(void **state)
{
    uint16_t(*x)[8][8] = room(4 * sizeof *x);
    uint16_t(*y)[4][8][8] = room(2 * sizeof *y);
    uint32_t(*r)[4] = room(32 * sizeof *r);
    uint32_t(*transposed)[4] = room(32 * sizeof *transposed);
    uint32_t *one = room(32 * sizeof *one);

    (void)state;
    for (int i = 0; i < 256; i++)
        x[i / 64][i / 8 % 8][i % 8] = (uint16_t)(i * 251);
    assert_int_equal(matrices(0, x[0][0], r[0], transposed[0], one, y[0][0][0]),
                     0);
    assert_int_equal(synchronize(), 0);
    for (int lane = 0; lane < 32; lane++)
        for (int m = 0; m < 4; m++) {
            int row = lane / 4, col = lane % 4 * 2;

            assert_int_equal(r[lane][m],
                             x[m][row][col] | (uint32_t)x[m][row][col + 1]
                                                  << 16);
            assert_int_equal(transposed[lane][m],
                             x[m][col][row] | (uint32_t)x[m][col + 1][row]
                                                  << 16);
            if (m == 0)
                assert_int_equal(one[lane], transposed[lane][0]);
        }
    for (int i = 0; i < 256; i++) {
        int m = i / 64, row = i / 8 % 8, col = i % 8;
        bool added = m == 0;

        assert_int_equal(y[0][m][row][col], x[m][row][col]);
        assert_int_equal(y[1][m][row][col],
                         (uint16_t)(x[m][row][col] + (added ? 1 : 0)));
    }
    cuda.Free(x);
    cuda.Free(y);
    cuda.Free(r);
    cuda.Free(transposed);
    cuda.Free(one);
}

/* ---- captures ------------------------------------------------------------ */

enum { CALLS = 13 };

/* Asks for number i of what no graph can have; whether that was refused. */
static bool is_refused(int i, cudaStream_t s, cudaStream_t other,
                       cudaEvent_t inside, cudaEvent_t outside, void *device,
                       cudaGraphExec_t graph)
{
    char pageable[4] = {0};
    void *x = NULL;

    switch (i) {
    case 0:
        return cuda.StreamSynchronize(s) != cudaSuccess;
    case 1:
        return cuda.DeviceSynchronize() != cudaSuccess;
    case 2:
        return cuda.Malloc(&x, 4) != cudaSuccess;
    case 3:
        return cuda.Free(device) != cudaSuccess;
    case 4:
        return cuda.MemcpyAsync(device, pageable, 4, cudaMemcpyHostToDevice,
                                s) != cudaSuccess;
    case 5:
        return cuda.MemcpyAsync(pageable, device, 4, cudaMemcpyDeviceToHost,
                                s) != cudaSuccess;
    case 6:
        return cuda.EventSynchronize(inside) != cudaSuccess;
    case 7:
        return cuda.StreamWaitEvent(s, outside, 0) != cudaSuccess;
    case 8:
        return cuda.GraphLaunch(graph, s) != cudaSuccess;
    case 9:
        return cuda.EventQuery(inside) != cudaSuccess;
    case 10:
        return cuda.EventQuery(outside) != cudaSuccess;
    case 11:
        return cuda.EventSynchronize(outside) != cudaSuccess;
    case 12:
        return cuda.StreamQuery(other) != cudaSuccess;
    default:
        return false;
    }
}

/* And then there is no graph; but the stream is as good as before. */
static void test_a_capture_rejects_calls_that_no_graph_has(void **state)
{
    cudaStream_t s = NULL, other = NULL;
    cudaEvent_t inside = NULL, outside = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    void *x = NULL;

    (void)state;
    assert_int_equal(cuda.StreamCreate(&s), 0);
    assert_int_equal(cuda.StreamCreate(&other), 0);
    assert_int_equal(cuda.EventCreate(&inside), 0);
    assert_int_equal(cuda.EventCreate(&outside), 0);
    assert_int_equal(cuda.EventRecord(outside, other), 0);
    assert_int_equal(cuda.Malloc(&x, 4), 0);
    for (int i = -1; i < CALLS; i++) {
        assert_int_equal(
            cuda.StreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), 0);
        assert_int_equal(cuda.MemsetAsync(x, 1, 4, s), 0);
        assert_int_equal(cuda.EventRecord(inside, s), 0);
        if (i < 0) {
            assert_int_equal(cuda.StreamEndCapture(s, &graph), 0);
            assert_int_equal(cuda.GraphInstantiate(&replay, graph, 0), 0);
            cuda.GraphDestroy(graph);
            continue;
        }
        assert_true(is_refused(i, s, other, inside, outside, x, replay));
        assert_int_not_equal(cuda.StreamEndCapture(s, &graph), 0);
        assert_null(graph);
        assert_int_equal(cuda.GraphLaunch(replay, s), 0);
        assert_int_equal(cuda.StreamSynchronize(s), 0);
    }
    /* What was recorded in a capture means nothing in the next. */
    assert_int_equal(
        cuda.StreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_not_equal(cuda.StreamWaitEvent(s, inside, 0), 0);
    assert_int_not_equal(cuda.StreamEndCapture(other, &graph), 0);
    assert_int_not_equal(cuda.StreamEndCapture(s, &graph), 0);
    cuda.GraphExecDestroy(replay);
    cuda.EventDestroy(inside);
    cuda.EventDestroy(outside);
    cuda.StreamDestroy(other);
    cuda.StreamDestroy(s);
    cuda.Free(x);
}

/* ---- what else a device does not do ----------------------------------------
 */

static void test_host_memory_is_not_device_memory(void **state)
{
    float here[4] = {0}, *x = room(sizeof here);

    (void)state;
    assert_int_not_equal(
        cuda.MemcpyAsync(here, x, sizeof here, cudaMemcpyDeviceToDevice, NULL),
        0);
    assert_int_not_equal(
        cuda.MemcpyAsync(here, here, sizeof here, cudaMemcpyHostToDevice, NULL),
        0);
    assert_int_not_equal(cuda.MemcpyAsync(x, here, sizeof here + 1,
                                          cudaMemcpyHostToDevice, NULL),
                         0);
    assert_int_equal(
        cuda.MemcpyAsync(x, here, sizeof here, cudaMemcpyHostToDevice, NULL),
        0);
    assert_int_not_equal(cuda.MemsetAsync(here, 0, sizeof here, NULL), 0);
    assert_int_not_equal(cuda.Free(here), 0);
    assert_int_equal(cuda.Free(x), 0);
    assert_int_not_equal(cuda.Free(x), 0);
}

/* Runs this program again as a child whose host code touches memory of the
 * device. Returns whether the child ended without an error. */
static bool may_touch(bool shut)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        if (shut)
            setenv("BMUF_EMULATED_SHUT", "1", 1);
        execl("/proc/self/exe", "test_emulation", "touch", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 127);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_the_host_cannot_touch_memory_of_the_device(void **state)
{
    (void)state;
    assert_true(may_touch(false));
    assert_false(may_touch(true));
}

/* As a device does: more shared memory than 48 KiB is allowed to no kernel that
 * has not asked for it; memory is pinned once; and a time lies between events
 * that take it. */
static void test_invalid_launches_pins_and_times_fail(void **state)
{
    static char page[2][4096];
    struct cudaLaunchConfig_st launch = {.gridDim = {1, 1, 1},
                                         .blockDim = {32, 1, 1}};
    uint32_t *a = NULL;
    float *c = NULL, ms = 0;
    void *arguments[3] = {&a, &a, &c};
    cudaEvent_t timed = NULL, untimed = NULL;

    (void)state;
    assert_int_equal(cuda.Malloc((void **)&a, 4096), 0);
    assert_int_equal(cuda.Malloc((void **)&c, 4096), 0);
    launch.dynamicSmemBytes = 48 << 10;
    assert_int_equal(
        cuda.LaunchKernelExC(&launch, multiply_kernel(), arguments), 0);
    launch.dynamicSmemBytes++;
    assert_int_not_equal(
        cuda.LaunchKernelExC(&launch, multiply_kernel(), arguments), 0);
    launch.dynamicSmemBytes = 0;
    launch.blockDim.x = 1025;
    assert_int_not_equal(
        cuda.LaunchKernelExC(&launch, multiply_kernel(), arguments), 0);
    assert_int_equal(synchronize(), 0);

    assert_int_not_equal(cuda.HostRegister(page, 0, 0), 0);
    assert_int_equal(cuda.HostRegister(page, sizeof page, 0), 0);
    assert_int_not_equal(cuda.HostRegister(page[1], sizeof page[1], 0), 0);
    assert_int_not_equal(cuda.HostUnregister(page[1]), 0);
    assert_int_equal(cuda.HostUnregister(page), 0);
    assert_int_not_equal(cuda.HostUnregister(page), 0);

    assert_int_equal(cuda.EventCreate(&timed), 0);
    assert_int_equal(
        cuda.EventCreateWithFlags(&untimed, cudaEventDisableTiming), 0);
    assert_int_equal(cuda.EventRecord(timed, NULL), 0);
    assert_int_equal(cuda.EventRecord(untimed, NULL), 0);
    assert_int_equal(cuda.EventElapsedTime(&ms, timed, timed), 0);
    assert_int_not_equal(cuda.EventElapsedTime(&ms, timed, untimed), 0);
    cuda.EventDestroy(timed);
    cuda.EventDestroy(untimed);
    cuda.Free(a);
    cuda.Free(c);
}

static void *symbol(const char *name)
{
    void *x = emulated_symbol(name);
    assert_non_null(x);
    return x;
}

static int load(void **state)
{
    (void)state;
    *(void **)&multiply = symbol("bm_probe_multiply");
    *(void **)&matrices = symbol("bm_probe_matrices");
    *(void **)&multiply_kernel = symbol("bm_probe_multiply_kernel");
    *(void **)&synchronize = symbol("cudaDeviceSynchronize");
#define X(name) *(void **)&cuda.name = symbol("cuda" #name);
    RUNTIME(X)
#undef X
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_product_has_the_layout_of_the_manual),
        cmocka_unit_test(test_matrices_have_the_layout_of_the_manual),
        cmocka_unit_test(test_a_capture_rejects_calls_that_no_graph_has),
        cmocka_unit_test(test_host_memory_is_not_device_memory),
        cmocka_unit_test(test_the_host_cannot_touch_memory_of_the_device),
        cmocka_unit_test(test_invalid_launches_pins_and_times_fail),
    };

    if (!have_backend("cuda")) /* which is loaded then */
        return SKIPPED;
    if (argc > 1 && strcmp(argv[1], "touch") == 0) {
        load(NULL);
        cuda.Free(room(4));
        return 0;
    }
    return cmocka_run_group_tests_name("emulation", tests, load, NULL);
}
