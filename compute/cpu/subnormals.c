/* subnormals.c - takes numbers that are too small for float as zero. */
#include "compute/cpu/subnormals.h"

#if defined __x86_64__

#include <immintrin.h>

void bm_subnormals_to_zero(void)
{
    const unsigned results = 0x8000, operands = 0x0040; /* FTZ, DAZ in MXCSR */

    _mm_setcsr(_mm_getcsr() | results | operands);
}

#elif defined __aarch64__

#include <stdint.h>

void bm_subnormals_to_zero(void)
{
    uint64_t control = 0;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control |= UINT64_C(1) << 24; /* FZ: operands and results */
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}

#else

void bm_subnormals_to_zero(void) {}

#endif
