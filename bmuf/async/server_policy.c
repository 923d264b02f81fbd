#include "bmuf/async/server_policy.h"

double bm_server_policy_scale(const bm_server_policy *policy, double tau)
{
    return tau < 1 || !policy->scaled ? 1 : 1 / tau;
}
