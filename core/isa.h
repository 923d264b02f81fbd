/*
 * isa.h - loops that are compiled once for each instruction set, and the choice
 * of one at run time.
 *
 * CMakeLists.txt selects these files by name (*_loops.c, compute/cpu/loops/,
 * comm/code/code_*.c). It compiles each once for every name in BM_ISAS, with
 * BM_ISA set to it and the compiler's flags for it.
 * Each object defines a table. The program uses the last table that the machine
 * can run, or the one that the environment variable BMUF_ISA names.
 */
#ifndef BM_CORE_ISA_H
#define BM_CORE_ISA_H

#include "core/status.h"

#include <stddef.h>

/* Each set includes those before it. */
#ifdef __x86_64__
#define BM_ISAS(X) X(baseline) X(avx2) X(avx512)
#else
#define BM_ISAS(X) X(baseline)
#endif

/* The name of a table: bm_loops_avx2. */
#define BM_OF_ISA_(table, isa) table##_##isa
#define BM_OF_ISA(table, isa)  BM_OF_ISA_(table, isa)

/* The last set that this machine can run. */
const char *bm_isa_best(void);

/* *out <- the index in BM_ISAS of the set to use. Fails with BM_ERR_CONFIG if
 * BMUF_ISA is unknown or this machine cannot run it. */
BM_CHECKED bm_status bm_isa_choose(size_t *out);

#endif
