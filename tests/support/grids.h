/* grids.h - the largest a x b x c of so many workers that is no single ring, as
 * far as there is, for [job] topology. */
#ifndef BM_TESTS_SUPPORT_GRIDS_H
#define BM_TESTS_SUPPORT_GRIDS_H

#include <stdio.h>

static inline void topology(int workers, char out[32])
{
    int size[3] = {workers, 1, 1};

    for (int k = 0; k < 2; k++)
        for (int a = 2; a < size[k]; a++)
            if (size[k] % a == 0) {
                size[k + 1] = size[k] / a;
                size[k] = a;
            }
    snprintf(out, 32, "%dx%dx%d", size[0], size[1], size[2]);
}

#endif
