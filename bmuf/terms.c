#include "bmuf/terms.h"

#include <math.h>
#include <string.h>

double bm_terms_scale(const bm_terms *terms, double tau)
{
    return tau < 1 || terms->power == 0 ? 1 : pow(tau, -terms->power);
}

double bm_scaling_power(const bm_scaling *s)
{
    if (strcmp(s->scaling, "none") == 0)
        return 0;
    return strcmp(s->scaling, "inverse") == 0 ? 1 : s->power;
}
