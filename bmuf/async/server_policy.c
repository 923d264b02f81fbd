#include "bmuf/async/server_policy.h"

#include <math.h>
#include <string.h>

double bm_server_policy_scale(const bm_server_policy *server_policy, double tau)
{
    return tau < 1 || server_policy->power == 0
               ? 1
               : pow(tau, -server_policy->power);
}

double bm_scaling_power(const bm_scaling *s)
{
    if (strcmp(s->scaling, "none") == 0)
        return 0;
    return strcmp(s->scaling, "inverse") == 0 ? 1 : s->power;
}

void bm_scaling_check(const bm_scaling *s, const char *section,
                      const bm_config *config, bm_faults *faults)
{
    static const double usual = 0.5; /* of BM_SCALING_OPTIONS */

    if (s->power != usual && strcmp(s->scaling, "power") != 0)
        bm_config_fault(faults, config, section, "power",
                        "%s.power = %g is for %s.scaling = power alone",
                        section, s->power, section);
}
