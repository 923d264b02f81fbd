#include "cli/score/interval_text.h"

#include "core/log.h"
#include "core/text/words.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static bool is_known(const bm_interval *i)
{
    return i->rate > 0 && !isnan(i->low); /* false for NAN */
}

const char *bm_interval_text(const bm_interval *i, char out[80])
{
    if (is_known(i))
        snprintf(out, 80, "%.2f to %.2f", 100 * i->low, 100 * i->high);
    else
        snprintf(out, 80, "unknown");
    return out;
}

json_t *bm_interval_json(const bm_interval *i)
{
    return is_known(i) ? json_pack("[f, f]", i->low, i->high) : json_null();
}

const char *bm_difference_text(const bm_interval *i, char out[120])
{
    const char *word = i->rate < 0 ? "lower" : "higher";
    bool clear = i->low > 0 || i->high < 0;
    double a = 100 * fmin(fabs(i->low), fabs(i->high));
    double b = 100 * fmax(fabs(i->low), fabs(i->high));
    double sure = 100 * fmax(i->below, 1 - i->below);

    if (isnan(i->rate))
        snprintf(out, 120, "not known");
    else if (isnan(i->low))
        snprintf(out, 120, "too few to compare");
    else if (i->low == 0 && i->high == 0)
        snprintf(out, 120, "no difference in any sequence");
    else if (clear)
        snprintf(out, 120,
                 "%s by %.2f points (%.2f to %.2f), probability %s%.1f %%",
                 word, 100 * fabs(i->rate), a, b, sure > 99.9 ? "above " : "",
                 fmin(sure, 99.9));
    else
        snprintf(out, 120,
                 "%s by %.2f points (from %.2f lower to %.2f higher), not "
                 "significant",
                 word, 100 * fabs(i->rate), 100 * fabs(i->low),
                 100 * fabs(i->high));
    return out;
}

json_t *bm_difference_json(const bm_interval *i)
{
    if (isnan(i->low))
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "difference", i->rate, "low",
                     i->low, "high", i->high, "probability_lower", i->below);
}

void bm_interval_warn(size_t n, const char *noun)
{
    if (n < BM_GOOD_DRAWN)
        bm_log(BM_WARNING,
               "a confidence interval from %s is unreliable; score at least %d "
               "%ss",
               bm_count_noun((long long)n, noun).text, BM_GOOD_DRAWN, noun);
}
