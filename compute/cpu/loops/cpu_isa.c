#include "compute/cpu/loops/cpu_isa.h"

static const bm_isa sets[] = {
#define X(isa)                                                                 \
    {#isa,                                                                     \
     &bm_loops_##isa,                                                          \
     &bm_product_##isa,                                                        \
     &bm_byte_product_##isa,                                                   \
     &bm_matrix_loops_##isa,                                                   \
     &bm_loss_loops_##isa,                                                     \
     &bm_conv_loops_##isa,                                                     \
     &bm_image_loops_##isa},
    BM_ISAS(X)
#undef X
};

bm_status bm_isa_find(const bm_isa **out)
{
    size_t i = 0;

    BM_TRY(bm_isa_choose(&i));
    *out = &sets[i];
    return BM_OK;
}
