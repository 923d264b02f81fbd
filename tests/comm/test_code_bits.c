/* All instruction sets give the same codes, and 1-bit codes add in the order that
 * comm/code/code_onebit.c documents. */
#include "comm/code/code.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 5000 };

/* Of both signs, with sizes from 2^-spread to 2^spread. */
static void fill(size_t n, double spread, uint64_t seed, float *x)
{
    bm_rng rng = bm_rng_make(seed, "test", 0);

    for (size_t i = 0; i < n; i++) {
        double size = exp2(spread * (2 * bm_rng_uniform(&rng) - 1));
        x[i] = (float)((2 * bm_rng_uniform(&rng) - 1) * size);
    }
}

static void pass(bm_code c, size_t n, const float *x, unsigned char *code,
                 float *y)
{
    c.ops->encode(&c, n, x, code);
    c.ops->decode(&c, n, code, y);
}

/* The mean of the negative numbers, or of the others. */
static float mean_of(size_t n, const float *x, bool below)
{
    double sum[16] = {0}, count = 0;

    for (size_t i = 0; i < n; i++)
        if ((x[i] < 0) == below) {
            sum[i % 16] += x[i];
            count++;
        }
    for (int half = 8; half >= 1; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] += sum[half + k];
    return count > 0 ? (float)(sum[0] / count) : 0;
}

static void check_means(size_t n, const float *x)
{
    static unsigned char code[4 * LONGEST];
    static float y[LONGEST];
    float below = mean_of(n, x, true), above = mean_of(n, x, false);

    pass(bm_code_find("onebit", 0), n, x, code, y);
    for (size_t i = 0; i < n; i++)
        assert_true(y[i] == (x[i] < 0 ? below : above));
}

/* Near 2^53 and 2^29 single ones are lost in rounding, but sums of ones are
 * not. */
static void test_onebit_adds_in_the_documented_order(void **state)
{
    enum { ROWS = 64 };
    size_t lost = 0, all = 0;

    (void)state;
    for (size_t i = 1; i < ROWS; i++)
        for (size_t j = i + 1; j < ROWS; j++)
            for (int sign = -1; sign <= 1; sign += 2) {
                float x[ROWS], one = (float)sign;

                for (size_t k = 0; k < ROWS; k++)
                    x[k] = one * 0x1p-99F;
                x[0] = one * 0x1p53F;
                x[16] = one * 0x1p29F;
                x[i] += one;
                x[j] += one;
                check_means(ROWS, x);
                lost += mean_of(ROWS, x, sign < 0) == one * 0x1p47F;
                all++;
            }
    assert_true(lost > 0 && lost < all);
}

static void test_onebit_accepts_columns_of_any_length(void **state)
{
    static float x[LONGEST];

    (void)state;
    for (size_t n = 1; n <= LONGEST; n += n < 100 ? 1 : 377) {
        fill(n, 30, n, x);
        x[n / 3] = -0.F;
        check_means(n, x);
        for (size_t i = 0; i < n; i++)
            x[i] = fabsf(x[i]);
        check_means(n, x);
        for (size_t i = 0; i < n; i++)
            x[i] = -x[i];
        check_means(n, x);
    }
}

/* ---- instruction sets ---------------------------------------------------- */

enum { CHUNK = 1024 };

/* Encodes and decodes x. */
typedef struct result {
    unsigned char code[4 * CHUNK];
    float y[CHUNK];
} result;

/* False if this machine does not have the instruction set. */
static bool pass_by(const char *isa, const char *name, size_t n, const float *x,
                    result *out)
{
    size_t number = 0;
    bool runs = false;

    setenv("BMUF_ISA", isa, 1);
    runs = bm_isa_choose(&number) == BM_OK;
    if (runs) {
        bm_code c = bm_code_find(name, 0.1);
        bool plainest = false;

        for (size_t i = 0; bm_codes_baseline[i] != NULL; i++)
            plainest = plainest || c.ops == bm_codes_baseline[i];
        assert_int_equal(plainest, number == 0);
        pass(c, n, x, out->code, out->y);
    }
    unsetenv("BMUF_ISA");
    return runs;
}

static void test_all_instruction_sets_give_the_same_bits(void **state)
{
    static const char *const names[] = {
#define X(name) #name,
        BM_CODES(X)
#undef X
    };
    static const char *const better[] = {"avx2", "avx512"};
    static const size_t lengths[] = {1,  2,  15,  16,  17,   31,   32,   33,
                                     63, 65, 255, 257, 1000, 1023, CHUNK};
    static result expected, got;
    float x[CHUNK];

    (void)state;
    FOR_EACH (k, names)
        FOR_EACH (l, lengths)
            for (uint64_t spread = 1; spread < 120; spread += 17) {
                size_t n = lengths[l];

                fill(n, (double)spread, n + spread, x);
                assert_true(pass_by("baseline", names[k], n, x, &expected));
                FOR_EACH (i, better)
                    if (pass_by(better[i], names[k], n, x, &got))
                        assert_memory_equal(&got, &expected, sizeof got);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onebit_adds_in_the_documented_order),
        cmocka_unit_test(test_onebit_accepts_columns_of_any_length),
        cmocka_unit_test(test_all_instruction_sets_give_the_same_bits),
    };
    return RUN_GROUP("code_bits", tests);
}
