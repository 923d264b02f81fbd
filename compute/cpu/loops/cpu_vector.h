/*
 * cpu_vector.h - the widest vectors of floats of an instruction set, for files
 * that are compiled once for each set (see cpu_isa.h) and keep a tile of ROWS x
 * 2 vectors in registers.
 */
#ifndef BM_COMPUTE_CPU_LOOPS_CPU_VECTOR_H
#define BM_COMPUTE_CPU_LOOPS_CPU_VECTOR_H

#include <stddef.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#if defined __AVX512F__
enum { LANES = 16, ROWS = 8 };
typedef __m512 vector;
#define SPREAD(x)     _mm512_set1_ps(x)
#define MADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined __FMA__
enum { LANES = 8, ROWS = 6 };
typedef __m256 vector;
#define SPREAD(x)     _mm256_set1_ps(x)
#define MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
enum { LANES = 4, ROWS = 4 };
typedef float vector __attribute__((vector_size(16)));
#define SPREAD(x)     ((vector){x, x, x, x})
#define MADD(a, b, c) ((a) * (b) + (c))
#endif

enum { COLUMNS = 2 * LANES };

static inline vector load(const float *x)
{
    vector v;

    memcpy(&v, x, sizeof v);
    return v;
}

static inline void store(float *x, vector v)
{
    memcpy(x, &v, sizeof v);
}

#endif
