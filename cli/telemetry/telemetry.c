#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/telemetry/telemetry.h"

#include "cli/telemetry/metrics.h"
#include "cli/telemetry/tensorboard.h"
#include "core/file/file.h"
#include "core/text/printable.h"

#include <stdlib.h>
#include <time.h>

struct bm_telemetry {
    bm_journal *journal;   /* borrowed */
    bm_metrics *metrics;   /* NULL: none */
    bm_tensorboard *board; /* NULL: none */
};

static double unix_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void take(void *self, const char *event, const bm_field *fields)
{
    bm_telemetry *t = self;
    double now = unix_time();

    if (t->metrics != NULL)
        bm_metrics_take(t->metrics, event, fields, now);
    if (t->board != NULL)
        bm_tensorboard_take(t->board, event, fields, now);
}

bm_status bm_telemetry_open(bm_telemetry **out, const bm_job *job,
                            const char *directory, bm_journal *journal)
{
    char run[256], label[1024], *whole = NULL; /* label: UTF-8, to be printed */
    bm_telemetry *t = NULL;
    bm_status status = BM_OK;

    *out = NULL;
    if (journal == NULL || (job->metrics[0] == '\0' && !job->tensorboard))
        return BM_OK;
    t = calloc(1, sizeof *t);
    if (t == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to follow a journal");
    whole = realpath(directory, NULL); /* "." has a name, too */
    bm_file_name(whole != NULL ? whole : directory, run, sizeof run);
    free(whole);
    if (job->metrics[0] != '\0')
        BM_TRY_DONE(bm_metrics_open(&t->metrics, job->metrics,
                                    bm_printable(run, label, sizeof label)));
    if (job->tensorboard)
        BM_TRY_DONE(bm_tensorboard_open(&t->board, directory));
    t->journal = journal;
    bm_journal_watch(journal, take, t);
    *out = t;
    t = NULL;
done:
    bm_telemetry_close(t);
    return status;
}

void bm_telemetry_close(bm_telemetry *t)
{
    if (t == NULL)
        return;
    bm_journal_watch(t->journal, NULL, NULL);
    bm_metrics_free(t->metrics);
    bm_tensorboard_close(t->board);
    free(t);
}

void bm_telemetry_model(bm_telemetry *t, const bm_params *params,
                        const float *model)
{
    if (t != NULL && t->board != NULL)
        bm_tensorboard_model(t->board, params, model, unix_time());
}

void bm_telemetry_example(bm_telemetry *t, const char *sequence,
                          const char *text)
{
    if (t != NULL && t->board != NULL)
        bm_tensorboard_example(t->board, sequence, text, unix_time());
}
