#include "bmuf/async/server_policy.h"

#include <math.h>

double bm_server_policy_scale(const bm_server_policy *policy, double tau)
{
    return tau < 1 || policy->power == 0 ? 1 : pow(tau, -policy->power);
}
