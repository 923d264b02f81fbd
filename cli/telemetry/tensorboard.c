#include "cli/telemetry/tensorboard.h"

#include "cli/telemetry/event_file.h"
#include "cli/telemetry/fields.h"
#include "core/text/printable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tags of an `eval` begin with its data: "dev/loss". */
static const struct scalar {
    const char *event, *field, *tag;
} scalars[] = {
    {"block", "loss", "train/loss"},
    {"block", "error", "train/error"},
    {"block", "rate", "train/rate"},
    {"block", "blank", "train/blank"},
    {"block", "padding", "train/padding"},
    {"block", "left_out", "train/left_out"},
    {"block", "g_norm", "filter/g_norm"},
    {"block", "delta_norm", "filter/delta_norm"},
    {"block", "cos_g_delta", "filter/cos_g_delta"},
    {"block", "worker_norm", "filter/worker_norm"},
    {"block", "cos_workers", "filter/cos_workers"},
    {"block", "block_momentum", "filter/block_momentum"},
    {"block", "block_rate", "filter/block_rate"},
    {"block", "frames_per_s", "time/frames_per_s"},
    {"block", "seconds", "time/block_s"},
    {"block", "compute_s", "time/compute_s"},
    {"block", "forward_s", "time/forward_s"},
    {"block", "loss_s", "time/loss_s"},
    {"block", "backward_s", "time/backward_s"},
    {"block", "update_s", "time/update_s"},
    {"block", "stall_s", "time/stall_s"},
    {"block", "wait_s", "time/wait_s"},
    {"block", "exchange_s", "time/exchange_s"},
    {"block", "sent_bytes", "exchange/sent_bytes"},
    {"block", "shared_bytes", "exchange/shared_bytes"},
    {"server", "updates", "server/updates"},
    {"server", "pushes", "server/pushes"},
    {"server", "staleness", "server/staleness"},
    {"server", "staleness_most", "server/staleness_most"},
    {"eval", "loss", "loss"},
    {"eval", "ler", "label_error"},
    {"eval", "wer", "word_error"},
    {"eval", "blank", "blank"},
    {"checkpoint", "seconds", "time/checkpoint_s"},
};

enum { N_SCALARS = sizeof scalars / sizeof scalars[0] };

struct bm_tensorboard {
    char *directory;
    bm_event_file *file;   /* NULL: not yet, or it cannot be created */
    int64_t begun, blocks; /* done when the job began, and now */
    float *before;         /* [n]: the last model; NULL: there is none */
};

bm_status bm_tensorboard_open(bm_tensorboard **out, const char *directory)
{
    bm_tensorboard *b = calloc(1, sizeof *b);

    if (b != NULL)
        b->directory = strdup(directory);
    if (b == NULL || b->directory == NULL) {
        bm_tensorboard_close(b);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for TensorBoard");
    }
    *out = b;
    return BM_OK;
}

void bm_tensorboard_close(bm_tensorboard *b)
{
    if (b == NULL)
        return;
    bm_event_file_close(b->file);
    free(b->directory);
    free(b->before);
    free(b);
}

static void start(bm_tensorboard *b, const bm_field *fields, double now)
{
    int attempt = (int)bm_field_number(fields, "attempt");

    b->begun = b->blocks = (int64_t)bm_field_number(fields, "blocks");
    if (bm_event_file_open(&b->file, b->directory, attempt, b->blocks + 1,
                           now) != BM_OK)
        bm_log(BM_WARNING, "nothing is written for TensorBoard: %s",
               bm_last_message());
}

/* A number that does not exist has no point in its curve. */
static void write_scalars(bm_tensorboard *b, const char *event,
                          const bm_field *fields, double now)
{
    const char *data = bm_field_text(fields, "data");
    bm_scalar out[N_SCALARS];
    size_t n = 0;

    for (size_t i = 0; i < N_SCALARS; i++) {
        double x = NAN;

        if (strcmp(scalars[i].event, event) != 0)
            continue;
        x = bm_field_number(fields, scalars[i].field);
        if (!isfinite(x))
            continue;
        if (data != NULL)
            snprintf(out[n].tag, sizeof out[n].tag, "%.40s/%s", data,
                     scalars[i].tag);
        else
            snprintf(out[n].tag, sizeof out[n].tag, "%s", scalars[i].tag);
        out[n++].value = x;
    }
    bm_event_file_scalars(b->file, now, b->blocks, out, n);
}

static bool has_scalars(const char *event)
{
    for (size_t i = 0; i < N_SCALARS; i++)
        if (strcmp(scalars[i].event, event) == 0)
            return true;
    return false;
}

void bm_tensorboard_take(bm_tensorboard *b, const char *event,
                         const bm_field *fields, double now)
{
    if (strcmp(event, "start") == 0)
        start(b, fields, now);
    if (!has_scalars(event))
        return;
    b->blocks += strcmp(event, "block") == 0;
    if (b->file != NULL)
        write_scalars(b, event, fields, now);
}

/* ---- histograms ---------------------------------------------------------- */

static void write_histograms(bm_tensorboard *b, const char *group,
                             const bm_params *p, const float *x,
                             const float *minus, double now)
{
    for (size_t i = 0; i < p->n_segments; i++) {
        const bm_segment *s = &p->segments[i];
        bm_histogram h;
        char tag[256];

        if (!bm_histogram_make(&h, x + s->offset,
                               minus != NULL ? minus + s->offset : NULL,
                               s->count))
            continue;
        snprintf(tag, sizeof tag, "%s/%s", group, s->name);
        bm_event_file_histogram(b->file, now, b->blocks, tag, &h);
    }
}

void bm_tensorboard_model(bm_tensorboard *b, const bm_params *params,
                          const float *model, double now)
{
    bool resumed = b->blocks == b->begun && b->begun > 0;

    if (b->file == NULL)
        return;
    if (!resumed)
        write_histograms(b, "weights", params, model, NULL, now);
    if (b->before != NULL)
        write_histograms(b, "updates", params, model, b->before, now);
    else
        b->before = malloc((params->n + 1) * sizeof *b->before);
    if (b->before != NULL)
        memcpy(b->before, model, params->n * sizeof *b->before);
}

void bm_tensorboard_example(bm_tensorboard *b, const char *sequence,
                            const char *text, double now)
{
    char tag[256], name[200]; /* UTF-8, else readers stop */

    snprintf(tag, sizeof tag, "examples/%s",
             bm_printable(sequence, name, sizeof name));
    if (b->file != NULL)
        bm_event_file_text(b->file, now, b->blocks, tag, text);
}
