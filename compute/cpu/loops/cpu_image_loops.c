/*
 * cpu_image_loops.c - pooling and batch normalisation, in loops that the
 * compiler vectorises. Compiled once for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_image_loops.h"

#include <stdbool.h>

/* Unrolled where frames and rows are constants. */
__attribute__((always_inline)) static inline void
largest_of(size_t frames, size_t rows, size_t apart, size_t n, const float *x,
           float *y)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float top = x[i];
        for (size_t t = 0; t < frames; t++)
            for (size_t h = 0; h < rows; h++) {
                float other = x[t * apart + h * n + i];
                top = other > top || other != other ? other : top;
            }
        y[i] = top;
    }
}

/* dx <- the gradient, or dx + the gradient: a constant where it is called. */
__attribute__((always_inline)) static inline void
largest_back_of(bool adds, size_t frames, size_t rows, size_t apart, size_t n,
                const float *x, const float *y, const float *dy, float *dx)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float left = dy[i], top = y[i];
        for (size_t t = 0; t < frames; t++)
            for (size_t h = 0; h < rows; h++) {
                size_t at = t * apart + h * n + i;
                int first = x[at] == top;
                float own = first ? left : 0;
                dx[at] = adds ? dx[at] + own : own;
                left = first ? 0 : left;
            }
    }
}

static void loop_largest(const bm_blocks *b, const float *x, float *y)
{
    size_t n = b->channels;

    for (size_t k = 0; k < b->count; k++, x += b->rows * n, y += n)
        if (b->frames == 2 && b->rows == 2)
            largest_of(2, 2, b->apart, n, x, y);
        else if (b->frames == 1 && b->rows == 2)
            largest_of(1, 2, b->apart, n, x, y);
        else if (b->frames == 3 && b->rows == 3)
            largest_of(3, 3, b->apart, n, x, y);
        else
            largest_of(b->frames, b->rows, b->apart, n, x, y);
}

static void loop_largest_back(const bm_blocks *b, const float *x,
                              const float *y, const float *dy, float *dx)
{
    size_t n = b->channels, step = b->rows * n;

    for (size_t k = 0; k < b->count;
         k++, x += step, dx += step, y += n, dy += n)
        if (b->frames == 2 && b->rows == 2)
            largest_back_of(false, 2, 2, b->apart, n, x, y, dy, dx);
        else if (b->frames == 1 && b->rows == 2)
            largest_back_of(false, 1, 2, b->apart, n, x, y, dy, dx);
        else
            largest_back_of(false, b->frames, b->rows, b->apart, n, x, y, dy,
                            dx);
}

static void loop_largest_add(const bm_blocks *b, const float *x, const float *y,
                             const float *dy, float *dx)
{
    if (b->frames == 3 && b->rows == 3)
        largest_back_of(true, 3, 3, b->apart, b->channels, x, y, dy, dx);
    else
        largest_back_of(true, b->frames, b->rows, b->apart, b->channels, x, y,
                        dy, dx);
}

static void loop_average(const bm_blocks *b, const float *x, float *y)
{
    size_t n = b->channels;
    float places = (float)(b->frames * b->rows);

    for (size_t i = 0; i < n; i++)
        y[i] = 0;
    for (size_t t = 0; t < b->frames; t++)
        for (size_t h = 0; h < b->rows; h++) {
            const float *from = x + t * b->apart + h * n;
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                y[i] += from[i];
        }
    for (size_t i = 0; i < n; i++)
        y[i] /= places;
}

static void loop_average_add(const bm_blocks *b, const float *dy, float *dx)
{
    size_t n = b->channels;
    float places = (float)(b->frames * b->rows);

    for (size_t t = 0; t < b->frames; t++)
        for (size_t h = 0; h < b->rows; h++) {
            float *to = dx + t * b->apart + h * n;
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                to[i] += dy[i] / places;
        }
}

__attribute__((always_inline)) static inline void
raise_to(size_t rows, size_t n, int32_t first, const float *x, float *y,
         int32_t *place)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float top = first == 0 ? x[i] : y[i];
        int32_t at = first == 0 ? 0 : place[i];
        for (size_t h = 0; h < rows; h++) {
            float other = x[h * n + i];
            int more = other > top || other != other;
            top = more ? other : top;
            at = more ? first + (int32_t)h : at;
        }
        y[i] = top;
        place[i] = at;
    }
}

static void loop_raise(size_t count, size_t rows, size_t n, int32_t first,
                       const float *x, float *y, int32_t *place)
{
    for (size_t k = 0; k < count; k++, x += rows * n, y += n, place += n)
        if (rows == 2 && first == 0)
            raise_to(2, n, 0, x, y, place);
        else if (rows == 2)
            raise_to(2, n, first, x, y, place);
        else
            raise_to(rows, n, first, x, y, place);
}

static void loop_lower(size_t count, size_t rows, size_t n, int32_t first,
                       const int32_t *place, const float *dy, float *dx)
{
    for (size_t k = 0; k < count; k++, dy += n, place += n)
        for (size_t h = 0; h < rows; h++, dx += n) {
            int32_t here = first + (int32_t)h;
#pragma omp simd
            for (size_t i = 0; i < n; i++)
                dx[i] = place[i] == here ? dy[i] : 0;
        }
}

static void loop_squares(size_t rows, size_t n, const float *restrict x,
                         const float *restrict center, float *restrict sum)
{
    for (size_t r = 0; r < rows; r++, x += n)
        for (size_t i = 0; i < n; i++)
            sum[i] += (x[i] - center[i]) * (x[i] - center[i]);
}

static void loop_scale(size_t rows, size_t n, const float *restrict a,
                       const float *restrict center, const float *restrict b,
                       const float *restrict x, float *restrict y)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n)
        for (size_t i = 0; i < n; i++)
            y[i] = a[i] * (x[i] - center[i]) + b[i];
}

static void loop_products(size_t rows, size_t n, const float *restrict dy,
                          const float *restrict x, const float *restrict center,
                          float *restrict sum, float *restrict product)
{
    for (size_t r = 0; r < rows; r++, x += n, dy += n)
        for (size_t i = 0; i < n; i++) {
            sum[i] += dy[i];
            product[i] += dy[i] * (x[i] - center[i]);
        }
}

static void loop_mix(size_t rows, size_t n, const float *restrict a,
                     const float *restrict b, const float *restrict center,
                     const float *restrict c, const float *restrict dy,
                     const float *restrict x, float *restrict dx)
{
    for (size_t r = 0; r < rows; r++, dy += n, x += n, dx += n)
        for (size_t i = 0; i < n; i++)
            dx[i] = a[i] * dy[i] + (b[i] * (x[i] - center[i]) + c[i]);
}

const bm_image_loops BM_OF_ISA(bm_image_loops, BM_ISA) = {
    .largest = loop_largest,
    .largest_back = loop_largest_back,
    .largest_add = loop_largest_add,
    .average = loop_average,
    .average_add = loop_average_add,
    .raise = loop_raise,
    .lower = loop_lower,
    .squares = loop_squares,
    .scale = loop_scale,
    .products = loop_products,
    .mix = loop_mix,
};
