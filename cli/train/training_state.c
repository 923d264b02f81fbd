/* training_state.c - what a checkpoint of a training run holds, and what a
 * branch of another run takes of one. */
#include "cli/train/numbers.h"
#include "cli/train/training.h"
#include "core/text/words.h"
#include "sgd/layer_rates.h"
#include "sgd/update.h"

#include <ctype.h>
#include <string.h>

bm_checkpoint bm_training_describe(bm_training *t)
{
    bm_checkpoint c = {.params = bm_training_params(t),
                       .states = t->states,
                       .position = bm_trainer_position(t->trainer),
                       .manifest = t->train->hash};
    bm_restart_numbers restart = bm_trainer_numbers(t->trainer);
    const bm_schedule_state *schedule = &t->schedule.state;

    c.n_states = bm_trainer_state(t->trainer, t->states, t->n_states);
    c.numbers[BM_NUMBER_FACTOR] = schedule->factor;
    c.numbers[BM_NUMBER_LAST] = schedule->last;
    c.numbers[BM_NUMBER_BAD] = schedule->bad;
    c.numbers[BM_NUMBER_BEST] = schedule->best;
    c.numbers[BM_NUMBER_WAITED] = schedule->waited;
    c.numbers[BM_NUMBER_LOSS] = restart.loss;
    c.numbers[BM_NUMBER_CHANCE] = restart.chance;
    c.numbers[BM_NUMBER_RATE] = restart.rate;
    c.numbers[BM_NUMBER_RHO] = restart.rho;
    c.numbers[BM_NUMBER_EPOCHS] = (double)t->epochs;
    c.numbers[BM_NUMBER_BLOCKS] = (double)t->blocks;
    c.numbers[BM_NUMBER_FRAMES] = t->frames;
    c.numbers[BM_NUMBER_SECONDS] = t->seconds;
    c.numbers[BM_NUMBER_ENDED] = t->ended;
    return c;
}

/* ---- branches --------------------------------------------------------------- */

/* Where the worker's number begins in the name of a state, "sgd.v.3"; the end of
 * the name: it has none. */
static size_t base_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && isdigit((unsigned char)dot[1]) ? (size_t)(dot - name)
                                                         : strlen(name);
}

/* What workers do between the exchanges of fragments counts from their last
 * ones, which a new run has not had. With a code it starts from the model. */
static bool belongs_to_position(const char *name)
{
    static const char *const names[] = {"own", "seen", "rates", "told",
                                        "common"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == base_of(name) &&
            strncmp(name, names[i], base_of(name)) == 0)
            return true;
    return false;
}

/* Where layers are frozen, no vector may be taken that moves them: what is kept
 * of them in Delta and in local states is cleared. */
static bool may_take(const bm_training *t, const char *name)
{
    bool cleared = strncmp(name, "delta", strlen("delta")) == 0 ||
                   bm_update_is_state(name, base_of(name));

    return (cleared || !bm_frozen_any(bm_training_params(t))) &&
           !belongs_to_position(name);
}

/* What became of the states. */
typedef struct branching {
    char taken[600], anew[600], unused[600]; /* names, separated by ", " */
} branching;

static void add_name(char list[600], const char *name, size_t n)
{
    size_t at = strlen(list);

    snprintf(list + at, 600 - at, "%s%.*s", at > 0 ? ", " : "", (int)n, name);
}

/* Workers 0, 1, .. of the file that have this state. */
static int workers_with(const bm_st_file *f, const char *name)
{
    char tensor[64];
    int k = 0;

    for (;; k++) {
        snprintf(tensor, sizeof tensor, "state.%.*s.%d", (int)base_of(name),
                 name, k);
        if (bm_st_find(f, tensor) == NULL)
            return k;
    }
}

/* Whether an earlier state has this name, as those of fragments do. */
static bool is_noted(const bm_training *t, const bm_state *s)
{
    for (const bm_state *other = t->states; other < s; other++)
        if (strcmp(other->name, s->name) == 0)
            return true;
    return false;
}

/* A state of rank 0, which stands for those of all workers. */
static void note_state(const bm_training *t, const bm_st_file *f,
                       const bm_state *s, bool taken, branching *out)
{
    int n = (int)t->set->job.workers, have = 0;
    char text[120];

    if (is_noted(t, s))
        return;
    if (s->name[base_of(s->name)] == '\0') {
        add_name(taken ? out->taken : out->anew, s->name, strlen(s->name));
        return;
    }
    if (strcmp(s->name + base_of(s->name), ".0") != 0)
        return;
    have = taken ? workers_with(f, s->name) : 0;
    if (have > 0)
        add_name(out->taken, s->name, base_of(s->name));
    if (have >= n)
        return;
    snprintf(text, sizeof text, "%.*s of %s", (int)base_of(s->name), s->name,
             bm_count_noun(have > 0 ? n - have : n, "worker").text);
    add_name(out->anew, text, strlen(text));
}

/* States of the file that this run does not have; of workers once. */
static void note_unused(const bm_training *t, const bm_st_file *f,
                        branching *out)
{
    for (size_t i = 0; i < bm_st_count(f); i++) {
        const char *name = bm_st_at(f, i)->name + strlen("state.");
        size_t n = 0;
        bool used = false;

        if (strncmp(bm_st_at(f, i)->name, "state.", strlen("state.")) != 0 ||
            (name[base_of(name)] != '\0' &&
             strcmp(name + base_of(name), ".0") != 0))
            continue;
        n = base_of(name);
        for (size_t k = 0; k < t->n_states && t->states[k].x != NULL; k++)
            used = used || (base_of(t->states[k].name) == n &&
                            strncmp(t->states[k].name, name, n) == 0);
        if (!used)
            add_name(out->unused, name, n);
    }
}

static void log_branching(const branching *b)
{
    if (b->taken[0] != '\0')
        bm_log(BM_NOTE, "taken over from that run: %s", b->taken);
    if (b->anew[0] != '\0')
        bm_log(BM_NOTE, "reset: %s", b->anew);
    if (b->unused[0] != '\0')
        bm_log(BM_NOTE, "not used by the new settings: %s", b->unused);
}

/* This rank's states. *delta <- whether Delta, which the learning rate is part of,
 * is among those that are taken. */
static bm_status take_states(bm_training *t, bm_st_file *f, size_t n,
                             bool *delta)
{
    size_t weights = bm_training_params(t)->n;
    branching out = {0};

    for (size_t i = 0; i < n; i++) {
        const bm_state *s = &t->states[i];
        bool taken = false;

        if (strcmp(s->name, "model") == 0)
            continue;
        if (t->origin.layers.whole && may_take(t, s->name))
            BM_TRY(bm_checkpoint_take(f, s, weights, &taken));
        if (taken && strcmp(s->name, "delta") == 0)
            bm_frozen_copy(bm_training_params(t), s, NULL);
        *delta = *delta || (taken && strcmp(s->name, "delta") == 0);
        note_state(t, f, s, taken, &out);
    }
    note_unused(t, f, &out);
    if (bm_training_first(t))
        log_branching(&out);
    return BM_OK;
}

static bm_status branch(bm_training *t, bm_restart_numbers *restart)
{
    double numbers[BM_CHECKPOINT_NUMBERS] = {0};
    bm_st_file *f = NULL;
    size_t n = bm_trainer_state(t->trainer, t->states, t->n_states);
    bool delta = false;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_st_open(&f, t->origin.path, true));
    BM_TRY_DONE(bm_checkpoint_numbers(f, t->origin.path, numbers));
    BM_TRY_DONE(take_states(t, f, n, &delta));
    if (delta)
        restart->rate = numbers[BM_NUMBER_RATE];
    if (t->origin.layers.whole)
        restart->rho = numbers[BM_NUMBER_RHO];
done:
    bm_st_free(f);
    return status;
}

/* The loss of the last block is not taken: data and loss may be others. */
bm_status bm_training_branch(bm_training *t)
{
    bm_restart_numbers restart = {0};

    BM_TRY(bm_comm_agree(t->comm, branch(t, &restart)));
    return bm_trainer_resume(t->trainer, (bm_position){0, 0}, restart);
}
