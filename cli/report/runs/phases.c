#include "cli/report/runs/phases.h"

#include "cli/report/journal_events.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *key, *words;
} names[] = {
#define X(name, words) {#name, words},
    BM_PHASES(X)
#undef X
};

static void add(bm_phases *p, bm_phase phase, double seconds)
{
    p->seconds[phase] += seconds;
    p->known += seconds;
}

/* `learning` is the compute time outside the four measured phases. */
static void add_block(bm_phases *p, const json_t *event)
{
    double forward = bm_event_number(event, "forward_s"),
           loss = bm_event_number(event, "loss_s");
    double backward = bm_event_number(event, "backward_s");
    double update = bm_event_number(event, "update_s");

    add(p, BM_PHASE_stall, bm_event_number(event, "stall_s"));
    add(p, BM_PHASE_forward, forward);
    add(p, BM_PHASE_loss, loss);
    add(p, BM_PHASE_backward, backward);
    add(p, BM_PHASE_update, update);
    add(p, BM_PHASE_learning,
        bm_event_number(event, "compute_s") - forward - loss - backward -
            update);
    add(p, BM_PHASE_wait, bm_event_number(event, "wait_s"));
    add(p, BM_PHASE_exchange, bm_event_number(event, "exchange_s"));
}

static void end(bm_phases *p, const json_t *event)
{
    add(p, BM_PHASE_model, bm_event_number(event, "model_s"));
    if (json_object_get(event, "total_s") != NULL)
        add(p, BM_PHASE_other, bm_event_number(event, "total_s") - p->known);
}

void bm_phases_add(bm_phases *p, const char *kind, const json_t *event)
{
    if (strcmp(kind, "start") == 0) {
        p->known = 0;
        add(p, BM_PHASE_start, bm_event_number(event, "seconds"));
    } else if (strcmp(kind, "block") == 0) {
        add_block(p, event);
    } else if (strcmp(kind, "eval") == 0) {
        add(p, BM_PHASE_eval, bm_event_number(event, "seconds"));
    } else if (strcmp(kind, "checkpoint") == 0) {
        add(p, BM_PHASE_checkpoint, bm_event_number(event, "seconds"));
    } else if (strcmp(kind, "best") == 0) {
        add(p, BM_PHASE_model, bm_event_number(event, "seconds"));
    } else if (strcmp(kind, "end") == 0) {
        end(p, event);
    }
}

double bm_phases_total(const bm_phases *p)
{
    double sum = 0;

    for (int i = 0; i < BM_PHASE_COUNT; i++)
        sum += p->seconds[i];
    return sum;
}

void bm_phases_print(const bm_phases *p, FILE *out)
{
    double all = fmax(bm_phases_total(p), 1e-9);

    fprintf(out, "time of rank 0\n");
    for (int i = 0; i < BM_PHASE_COUNT; i++)
        fprintf(out, "  %-18s %10.2f s %6.1f %%\n", names[i].words,
                p->seconds[i], 100 * p->seconds[i] / all);
    fprintf(out, "  %-18s %10.2f s\n", "total", bm_phases_total(p));
}

json_t *bm_phases_json(const bm_phases *p)
{
    json_t *o = json_object();

    for (int i = 0; i < BM_PHASE_COUNT; i++)
        json_object_set_new(o, names[i].key, json_real(p->seconds[i]));
    json_object_set_new(o, "total", json_real(bm_phases_total(p)));
    return o;
}
