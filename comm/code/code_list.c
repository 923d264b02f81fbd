/* code_list.c - all codes, as they are compiled for one instruction set. */
#include "comm/code/code.h"

#define X(name) extern const bm_code_ops BM_OF_ISA(bm_code_##name, BM_ISA);
BM_CODES(X)
#undef X

const bm_code_ops *const BM_OF_ISA(bm_codes, BM_ISA)[] = {
#define X(name) &BM_OF_ISA(bm_code_##name, BM_ISA),
    BM_CODES(X)
#undef X
        NULL,
};
