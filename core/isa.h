/*
 * isa.h - loops that are compiled once for each instruction set, and the choice
 * between them when the program runs.
 *
 * CMakeLists.txt lists the files of such loops. It compiles each with BM_ISA
 * set to every name of BM_ISAS, and with the compiler's flags for it; each
 * fills a table. The program takes the last one that its machine can run, or
 * the one that the environment variable BMUF_ISA names.
 */
#ifndef BM_CORE_ISA_H
#define BM_CORE_ISA_H

#include "core/status.h"

#include <stddef.h>

/* From the plainest to the best. */
#ifdef __x86_64__
#define BM_ISAS(X) X(baseline) X(avx2) X(avx512)
#else
#define BM_ISAS(X) X(baseline)
#endif

/* Every table is called after its set: bm_loops_avx2. */
#define BM_OF_ISA_(table, isa) table##_##isa
#define BM_OF_ISA(table, isa)  BM_OF_ISA_(table, isa)

/* The name of the best set that this machine runs. */
const char *bm_isa_best(void);

/* The place in BM_ISAS of the set to take. Fails if BMUF_ISA names none, or
 * none that this machine runs. */
BM_CHECKED bm_status bm_isa_choose(size_t *out);

#endif
