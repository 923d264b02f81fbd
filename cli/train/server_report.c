#include "cli/train/server_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void list_stale(const bm_service *t, FILE *out)
{
    const char *between = "";

    for (size_t i = 0; i < t->n_stale; i++)
        if (t->stale[i] > 0) {
            fprintf(out, "%s%zu:%.0f", between, i, t->stale[i]);
            between = " ";
        }
}

/* In the syntax of clock.times; a worker without a time has the mean of the
 * others. */
static void list_times(const bm_service *t, FILE *out)
{
    double sum = 0, n = 0;

    for (int k = 0; k < t->workers; k++)
        if (isfinite(t->step_s[k])) {
            sum += t->step_s[k];
            n++;
        }
    for (int k = 0; k < t->workers; k++)
        fprintf(out, "%s%.4g", k > 0 ? " " : "",
                isfinite(t->step_s[k]) ? t->step_s[k] : sum / n);
}

static void list_shards(const bm_service *t, FILE *out)
{
    for (int k = 0; k < t->shards; k++)
        fprintf(out, "%s%.4g", k > 0 ? " " : "",
                t->shard_mean != NULL ? t->shard_mean[k] : t->mean);
}

static char *list(const bm_service *t,
                  void (*write)(const bm_service *t, FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return NULL;
    write(t, memory);
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void bm_report_server(bm_journal *j, const bm_block_report *r, bool quiet)
{
    const bm_service *t = r->service;
    char *stale = NULL, *times = NULL, *shards = NULL;

    if (t == NULL)
        return;
    stale = list(t, list_stale);
    times = list(t, list_times);
    shards = list(t, list_shards);
    bm_journal_write(j, "server",
                     (bm_field[]){{"epoch", (double)r->at.epoch, NULL},
                                  {"block", (double)r->at.block, NULL},
                                  {"updates", t->updates, NULL},
                                  {"pushes", t->pushes, NULL},
                                  {"pushed_bytes", t->pushed, NULL},
                                  {"pulled_bytes", t->pulled, NULL},
                                  {"staleness", t->mean, NULL},
                                  {"staleness_most", t->most, NULL},
                                  {"staleness_counts", NAN, stale},
                                  {"shards", t->shards, NULL},
                                  {"staleness_of_shards", NAN, shards},
                                  {"virtual_s", t->seconds, NULL},
                                  {"step_s", NAN, times},
                                  {0}});
    if (!quiet)
        bm_log(BM_NOTE,
               "server: %.0f pushes, %.0f updates, mean staleness %.3g, "
               "largest %.0f",
               t->pushes, t->updates, t->mean, t->most);
    free(stale);
    free(times);
    free(shards);
}
