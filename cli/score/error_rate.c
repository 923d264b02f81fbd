#include "cli/score/error_rate.h"

#include "cli/score/interval_text.h"
#include "core/text/words.h"

#include <math.h>

double bm_error_rate_errors(const bm_error_rate *r)
{
    return r->substitutions + r->deletions + r->insertions;
}

double bm_error_rate_value(const bm_error_rate *r)
{
    return r->total > 0 ? bm_error_rate_errors(r) / r->total : NAN;
}

/* Counts of an evaluation are doubles. */
static bm_counted count(double n, const char *noun)
{
    return bm_count_noun((long long)n, noun);
}

void bm_error_rate_print(const char *title, const bm_error_rate *r, FILE *out)
{
    char text[80];

    if (!(r->total > 0))
        return;
    fprintf(out, "%-15s %.2f %%  (95 %%: %s; %s, %s, %s in %.0f)\n", title,
            100 * bm_error_rate_value(r), bm_interval_text(&r->interval, text),
            count(r->substitutions, "substitution").text,
            count(r->deletions, "deletion").text,
            count(r->insertions, "insertion").text, r->total);
}
