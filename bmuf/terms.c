#include "bmuf/terms.h"

#include "sgd/sgd.h"

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

void bm_scaling_check(const bm_scaling *s, bool gradients, const char *section,
                      const bm_config *config, bm_faults *faults)
{
    static const double usual = 0.5; /* of BM_SCALING_OPTIONS */
    bm_sgd_settings sgd = {0};

    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    if (s->power != usual && strcmp(s->scaling, "power") != 0)
        bm_config_fault(faults, config, section, "power",
                        "%s.power = %g is for %s.scaling = power alone",
                        section, s->power, section);
    if (gradients && bm_scaling_power(s) != 0 && bm_sgd_is_adam(&sgd))
        bm_config_fault(faults, config, section, "scaling",
                        "%s.scaling = %s makes gradients shorter, which "
                        "sgd.update = adamw takes no notice of; leave one out",
                        section, s->scaling);
}
