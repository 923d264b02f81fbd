/* metrics.c - tables that make metrics of the events of a journal. Counters
 * begin at 0 in each job, as those of any process do. */
#include "cli/telemetry/metrics.h"

#include "cli/telemetry/fields.h"
#include "core/file/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what is logged ------------------------------------------------------ */

#define STATES(X) X(running) X(done) X(converged) X(stopped) X(failed)
static const char *const states[] = {
#define X(name) #name,
    STATES(X)
#undef X
};
enum {
#define X(name) STATE_##name,
    STATES(X)
#undef X
        N_STATES
};

/* What a sample makes of a field: its value, the sum of its values, its value
 * less 1, the time of the event. */
enum how { LAST, SUM, LESS_ONE, WHEN };

typedef struct sample {
    const char *event; /* of the journal; NULL: update() computes it */
    const char *data;  /* of an `eval`; NULL: any */
    const char *field; /* of the event; NULL with WHEN */
    const char *label; /* besides run, as it is printed; NULL: none */
    enum how how;
} sample;

enum { MOST_SAMPLES = 8 };

static const struct metric {
    const char *name, *type, *help;
    sample samples[MOST_SAMPLES];
} metrics[] = {
    {"bmuf_state",
     "gauge",
     "1 for the state of the run, 0 for the others.",
     {{0}}},
    {"bmuf_workers",
     "gauge",
     "Workers of the run.",
     {{"start", NULL, "workers", NULL, LAST}}},
    {"bmuf_ranks",
     "gauge",
     "Processes of the job.",
     {{"start", NULL, "ranks", NULL, LAST}}},
    {"bmuf_start_timestamp_seconds",
     "gauge",
     "When the job began to train.",
     {{"start", NULL, NULL, NULL, WHEN}}},
    {"bmuf_restarts_total",
     "counter",
     "Earlier jobs of the run.",
     {{"start", NULL, "attempt", NULL, LESS_ONE}}},
    {"bmuf_blocks_done",
     "gauge",
     "Blocks done, in all jobs of the run.",
     {{NULL, NULL, "blocks_done", NULL, LAST}}},
    {"bmuf_epochs_done",
     "gauge",
     "Epochs done, with fractions, in all jobs of the run.",
     {{NULL, NULL, "epochs_done", NULL, LAST}}},
    {"bmuf_epochs_wanted",
     "gauge",
     "Epochs of the whole run.",
     {{"start", NULL, "epochs", NULL, LAST}}},
    {"bmuf_progress_ratio",
     "gauge",
     "Epochs done by epochs wanted.",
     {{NULL, NULL, "progress", NULL, LAST}}},
    {"bmuf_frames_total",
     "counter",
     "Frames that this job trained on.",
     {{"block", NULL, "frames", NULL, SUM}}},
    {"bmuf_batches_total",
     "counter",
     "Mini-batches of this job.",
     {{"block", NULL, "batches", NULL, SUM}}},
    {"bmuf_skipped_sequences_total",
     "counter",
     "Sequences of training data that the loss cannot use.",
     {{"block", NULL, "skipped", NULL, SUM}}},
    {"bmuf_bad_batches_total",
     "counter",
     "Mini-batches without an update, because the gradient was not finite.",
     {{"block", NULL, "bad_steps", NULL, SUM}}},
    {"bmuf_left_out_workers_total",
     "counter",
     "Workers left out of the mean of a block.",
     {{"block", NULL, "left_out", NULL, SUM}}},
    {"bmuf_learning_rate",
     "gauge",
     "Learning rate of the last block.",
     {{"block", NULL, "rate", NULL, LAST}}},
    {"bmuf_loss_nats",
     "gauge",
     "Mean loss: in training of the last block, else of the last evaluation.",
     {{"block", NULL, "loss", "data=\"train\"", LAST},
      {"eval", "dev", "loss", "data=\"dev\"", LAST},
      {"eval", "dev-ema", "loss", "data=\"dev-ema\"", LAST},
      {"eval", "test", "loss", "data=\"test\"", LAST}}},
    {"bmuf_label_error_ratio",
     "gauge",
     "Label errors by labels: in training of the last block, else of the last "
     "evaluation.",
     {{"block", NULL, "error", "data=\"train\"", LAST},
      {"eval", "dev", "ler", "data=\"dev\"", LAST},
      {"eval", "dev-ema", "ler", "data=\"dev-ema\"", LAST},
      {"eval", "test", "ler", "data=\"test\"", LAST}}},
    {"bmuf_best_label_error_ratio",
     "gauge",
     "Label errors of the best model on data.dev, if this job found it.",
     {{"best", NULL, "ler", NULL, LAST}}},
    {"bmuf_block_seconds",
     "gauge",
     "Duration of the last block.",
     {{"block", NULL, "seconds", NULL, LAST}}},
    {"bmuf_block_frames_per_second",
     "gauge",
     "Frames of the last block by its duration.",
     {{"block", NULL, "frames_per_s", NULL, LAST}}},
    {"bmuf_last_block_timestamp_seconds",
     "gauge",
     "When a block ended last.",
     {{"block", NULL, NULL, NULL, WHEN}}},
    {"bmuf_phase_seconds_total",
     "counter",
     "Where the time of rank 0 went: stall is waiting for data, wait for the "
     "slowest rank.",
     {{"start", NULL, "seconds", "phase=\"start\"", SUM},
      {"block", NULL, "compute_s", "phase=\"compute\"", SUM},
      {"block", NULL, "stall_s", "phase=\"stall\"", SUM},
      {"block", NULL, "wait_s", "phase=\"wait\"", SUM},
      {"block", NULL, "exchange_s", "phase=\"exchange\"", SUM},
      {"eval", NULL, "seconds", "phase=\"evaluation\"", SUM},
      {"best", NULL, "seconds", "phase=\"model\"", SUM},
      {"checkpoint", NULL, "seconds", "phase=\"checkpoint\"", SUM}}},
    {"bmuf_sent_bytes_total",
     "counter",
     "Bytes that the busiest rank of each block sent in messages.",
     {{"block", NULL, "sent_bytes", NULL, SUM}}},
    {"bmuf_shared_bytes_total",
     "counter",
     "Bytes that the busiest rank of each block shared in memory.",
     {{"block", NULL, "shared_bytes", NULL, SUM}}},
    {"bmuf_last_checkpoint_timestamp_seconds",
     "gauge",
     "When a checkpoint was written last, if this job wrote one.",
     {{"checkpoint", NULL, NULL, NULL, WHEN}}},
};

enum { N_METRICS = sizeof metrics / sizeof metrics[0] };

/* The kinds of events above. */
static const char *const kinds[] = {"start", "block",      "eval",
                                    "best",  "checkpoint", "end"};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct bm_metrics {
    char *path, *run;        /* the label, escaped */
    double written[N_KINDS]; /* when, after an event of the kind */
    bool warned;             /* that the file cannot be written */
    int state;               /* of STATES */
    double blocks, epochs;   /* done, in all jobs */
    double wanted;           /* epochs */
    struct {
        double value;
        bool known;
    } values[N_METRICS][MOST_SAMPLES];
};

/* ---- reading events ------------------------------------------------------ */

static void set(bm_metrics *m, const char *field, double x)
{
    for (size_t i = 0; i < N_METRICS; i++)
        if (metrics[i].samples[0].event == NULL &&
            metrics[i].samples[0].field != NULL &&
            strcmp(metrics[i].samples[0].field, field) == 0) {
            m->values[i][0].value = x;
            m->values[i][0].known = isfinite(x);
        }
}

/* A value that was never a number is not known, and not printed. */
static void take_field(bm_metrics *m, size_t i, size_t k, double x)
{
    double *value = &m->values[i][k].value;

    if (metrics[i].samples[k].how != SUM)
        *value = x;
    else if (isfinite(x))
        *value += x;
    m->values[i][k].known = m->values[i][k].known || isfinite(x);
}

static bool concerns(const sample *s, const char *event, const char *data)
{
    return s->event != NULL && strcmp(s->event, event) == 0 &&
           (s->data == NULL || (data != NULL && strcmp(s->data, data) == 0));
}

static void take_fields(bm_metrics *m, const char *event,
                        const bm_field *fields, double now)
{
    const char *data = bm_field_text(fields, "data");

    for (size_t i = 0; i < N_METRICS; i++)
        for (size_t k = 0; k < MOST_SAMPLES; k++) {
            const sample *s = &metrics[i].samples[k];

            if (!concerns(s, event, data))
                continue;
            if (s->how == WHEN)
                take_field(m, i, k, now);
            else
                take_field(m, i, k,
                           bm_field_number(fields, s->field) -
                               (s->how == LESS_ONE));
        }
}

static int state_of(const char *reason)
{
    for (int s = 0; reason != NULL && s < STATE_failed; s++)
        if (strcmp(reason, states[s]) == 0)
            return s;
    return STATE_failed;
}

static void update(bm_metrics *m, const char *event, const bm_field *fields)
{
    if (strcmp(event, "start") == 0) {
        m->wanted = bm_field_number(fields, "epochs");
        m->blocks = bm_field_number(fields, "blocks");
        m->epochs = bm_field_number(fields, "epochs_done");
    } else if (strcmp(event, "block") == 0) {
        m->blocks++;
        m->epochs = bm_field_number(fields, "epoch") +
                    (bm_field_number(fields, "block") + 1) /
                        bm_field_number(fields, "blocks_per_epoch");
    } else if (strcmp(event, "end") == 0) {
        m->state = state_of(bm_field_text(fields, "reason"));
    }
    set(m, "blocks_done", m->blocks);
    set(m, "epochs_done", m->epochs);
    set(m, "progress", m->epochs / m->wanted);
}

/* ---- printing ------------------------------------------------------------ */

static void print_value(double x, FILE *out)
{
    if (isnan(x))
        fputs("NaN\n", out);
    else if (isinf(x))
        fputs(x > 0 ? "+Inf\n" : "-Inf\n", out);
    else
        fprintf(out, "%.15g\n", x);
}

static void print_head(const struct metric *of, FILE *out)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", of->name, of->help, of->name,
            of->type);
}

static void print_state(const bm_metrics *m, FILE *out)
{
    print_head(&metrics[0], out);
    for (int s = 0; s < N_STATES; s++)
        fprintf(out, "%s{run=\"%s\",state=\"%s\"} %d\n", metrics[0].name,
                m->run, states[s], s == m->state);
}

static void print_metric(const bm_metrics *m, size_t i, FILE *out)
{
    bool headed = false;

    for (size_t k = 0; k < MOST_SAMPLES; k++) {
        const char *label = metrics[i].samples[k].label;

        if (!m->values[i][k].known)
            continue;
        if (!headed)
            print_head(&metrics[i], out);
        headed = true;
        fprintf(out, "%s{run=\"%s\"%s%s} ", metrics[i].name, m->run,
                label != NULL ? "," : "", label != NULL ? label : "");
        print_value(m->values[i][k].value, out);
    }
}

void bm_metrics_print(const bm_metrics *m, FILE *out)
{
    print_state(m, out);
    for (size_t i = 1; i < N_METRICS; i++)
        print_metric(m, i, out);
}

/* ---- the file ------------------------------------------------------------ */

/* The value of a label may have any character, three of them escaped. */
static char *escaped(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *to = out;

    for (; out != NULL && *text != '\0'; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            *to++ = '\\';
        *to++ = *text == '\n' ? 'n' : *text;
    }
    if (out != NULL)
        *to = '\0';
    return out;
}

bm_status bm_metrics_open(bm_metrics **out, const char *path, const char *run)
{
    bm_metrics *m = calloc(1, sizeof *m);

    if (m != NULL) {
        m->path = strdup(path);
        m->run = escaped(run);
    }
    if (m == NULL || m->path == NULL || m->run == NULL) {
        bm_metrics_free(m);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for metrics");
    }
    m->blocks = m->epochs = m->wanted = NAN;
    for (size_t i = 0; i < N_KINDS; i++)
        m->written[i] = -INFINITY;
    *out = m;
    return BM_OK;
}

bool bm_metrics_may_replace(const char *path)
{
    static const char first[] = "# HELP bmuf_";
    char text[sizeof first] = "";
    struct stat what;
    bool file = stat(path, &what) == 0 && S_ISREG(what.st_mode);
    FILE *f = file ? fopen(path, "re") : NULL;
    size_t n = 0;

    if (f == NULL)
        return true; /* whether it can be written shows later */
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    return n == 0 || strcmp(text, first) == 0;
}

void bm_metrics_free(bm_metrics *m)
{
    if (m == NULL)
        return;
    free(m->path);
    free(m->run);
    free(m);
}

static bm_status replace(const bm_metrics *m)
{
    bm_file_replacement r = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, m->path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    bm_metrics_print(m, r.stream);
    status = bm_file_replace_commit(&r, false);
done:
    bm_file_replace_abort(&r);
    return status;
}

static size_t kind_of(const char *event)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i], event) == 0)
            return i;
    return N_KINDS;
}

void bm_metrics_take(bm_metrics *m, const char *event, const bm_field *fields,
                     double now)
{
    size_t kind = kind_of(event);

    if (kind == N_KINDS)
        return;
    take_fields(m, event, fields, now);
    update(m, event, fields);
    if (fabs(now - m->written[kind]) < 1)
        return;
    m->written[kind] = now;
    if (replace(m) == BM_OK || m->warned)
        return;
    m->warned = true;
    bm_log(BM_WARNING, "job.metrics: %s; training goes on", bm_last_message());
}
