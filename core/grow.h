/*
 * grow.h - arrays that grow by one element at a time.
 *
 *     BM_TRY(bm_grow(&t->rows, t->n, &t->capacity, sizeof *t->rows));
 *     t->rows[t->n++] = row;
 */
#ifndef BM_CORE_GROW_H
#define BM_CORE_GROW_H

#include "core/status.h"

#include <stddef.h>

/* Makes room for element number n, from 0 on, of `size` bytes. `list` is the
 * address of a pointer from malloc, or of NULL with *capacity 0. It at least doubles.
 * Fails with BM_ERR_MEMORY; nothing has changed then. */
BM_CHECKED bm_status bm_grow(void *list, size_t n, size_t *capacity,
                             size_t size);

#endif
