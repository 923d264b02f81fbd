#define _GNU_SOURCE /* F_OFD_GETLK */
#include "cli/report/runs/summary.h"

#include "cli/report/journal_events.h"
#include "core/config/config.h"
#include "core/grow.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_EPOCHS = 1 << 20 };

/* Of a block; journals of older versions have it in the start event alone. */
static double number_from(const bm_run_summary *s, const json_t *block,
                          const char *key)
{
    bool own = json_object_get(block, key) != NULL;

    return bm_event_number_or(own ? block : s->last[BM_RUN_start], key, NAN);
}

/* Where a row of this epoch and block is, or belongs: nearly always the end. */
static size_t place_of(const bm_run_summary *s, size_t epoch, size_t block)
{
    size_t at = s->n_rows;

    while (at > 0 &&
           (s->rows[at - 1].epoch > epoch ||
            (s->rows[at - 1].epoch == epoch && s->rows[at - 1].block >= block)))
        at--;
    return at;
}

/* The epoch of an event, from `least` on; false: it has none that is valid. */
static bool epoch_of(const json_t *event, size_t least, size_t *out)
{
    json_int_t epoch = json_integer_value(json_object_get(event, "epoch"));

    *out = (size_t)epoch;
    return json_is_integer(json_object_get(event, "epoch")) &&
           epoch >= (json_int_t)least && epoch < MOST_EPOCHS;
}

static bool add_block(bm_run_summary *s, const json_t *event)
{
    size_t epoch = 0, at = 0;
    json_int_t block = json_integer_value(json_object_get(event, "block"));

    if (!epoch_of(event, 0, &epoch) || block < 0)
        return true;
    if (bm_grow(&s->rows, s->n_rows, &s->room, sizeof *s->rows) != BM_OK)
        return false;
    at = place_of(s, epoch, (size_t)block);
    if (at == s->n_rows || s->rows[at].epoch != epoch ||
        s->rows[at].block != (size_t)block) {
        memmove(s->rows + at + 1, s->rows + at,
                (s->n_rows - at) * sizeof *s->rows);
        s->n_rows++;
    }
    s->rows[at] = (bm_run_block){
        .epoch = epoch,
        .block = (size_t)block,
        .blocks_per_epoch = number_from(s, event, "blocks_per_epoch"),
        .block_momentum = number_from(s, event, "block_momentum"),
        .block_rate = number_from(s, event, "block_rate"),
        .loss = bm_event_number_or(event, "loss", NAN),
        .error = bm_event_number_or(event, "error", NAN),
        .rate = bm_event_number_or(event, "rate", NAN),
        .frames = bm_event_number(event, "frames"),
        .seconds = bm_event_number(event, "seconds"),
        .wait = bm_event_number_or(event, "wait_s", NAN),
        .g_norm = bm_event_number_or(event, "g_norm", NAN),
        .delta_norm = bm_event_number_or(event, "delta_norm", NAN),
        .cosine = bm_event_number_or(event, "cos_g_delta", NAN),
        .left_out = bm_event_number_or(event, "left_out", NAN),
        .audited = bm_event_number(event, "audited")};
    return true;
}

/* Makes room for epoch number k, from 0 on. */
static bool reach(bm_run_summary *s, size_t k)
{
    bm_run_epoch *grown = NULL;

    if (k < s->n_epochs)
        return true;
    grown = realloc(s->epochs, (k + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    s->epochs = grown;
    for (; s->n_epochs <= k; s->n_epochs++)
        s->epochs[s->n_epochs] =
            (bm_run_epoch){NAN, NAN, NAN, 0, 0, NAN, NAN, NAN};
    return true;
}

/* `epoch` is the number of epochs done. */
static bool add_eval(bm_run_summary *s, const json_t *event)
{
    const char *data = json_string_value(json_object_get(event, "data"));
    size_t epoch = 0;

    if (data == NULL || !epoch_of(event, 1, &epoch))
        return true;
    if (strcmp(data, "test") == 0)
        s->test_ler = bm_event_number_or(event, "ler", NAN);
    if (strncmp(data, "dev", 3) != 0)
        return true;
    if (!reach(s, epoch - 1))
        return false;
    if (strcmp(data, "dev") == 0) {
        s->epochs[epoch - 1].dev_loss = bm_event_number_or(event, "loss", NAN);
        s->epochs[epoch - 1].dev_ler = bm_event_number_or(event, "ler", NAN);
    } else {
        s->epochs[epoch - 1].ema_ler = bm_event_number_or(event, "ler", NAN);
    }
    return true;
}

typedef struct reading {
    bm_run_summary *s;
    bool whole; /* there was enough memory */
} reading;

static void add_event(void *self, const char *kind, json_t *event)
{
    static const char *const kinds[] = {
#define X(name) #name,
        BM_RUN_EVENTS(X)
#undef X
    };
    reading *r = self;
    bm_run_summary *s = r->s;

    bm_phases_add(&s->phases, kind, event);
    s->bytes += bm_event_number(event, "sent_bytes") +
                bm_event_number(event, "shared_bytes");
    for (size_t i = 0; i < BM_RUN_EVENTS_COUNT; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            json_decref(s->last[i]);
            s->last[i] = json_incref(event);
        }
    if (strcmp(kind, "start") == 0) { /* of a new job: not ended yet */
        json_decref(s->last[BM_RUN_end]);
        s->last[BM_RUN_end] = NULL;
    } else if (strcmp(kind, "block") == 0) {
        r->whole = r->whole && add_block(s, event);
        s->ranks = bm_event_number_or(s->last[BM_RUN_start], "ranks", NAN);
    } else if (strcmp(kind, "eval") == 0) {
        r->whole = r->whole && add_eval(s, event);
    }
}

/* Epochs from the blocks: means weighted by frames. */
static bool add_up(bm_run_summary *s)
{
    for (size_t i = 0; i < s->n_rows; i++) {
        const bm_run_block *b = &s->rows[i];
        bm_run_epoch *e = NULL;
        double share = 0;

        if (!reach(s, b->epoch))
            return false;
        e = &s->epochs[b->epoch];
        e->frames += b->frames;
        share = e->frames > 0 ? b->frames / e->frames : 1;
        e->loss =
            isnan(e->loss) ? b->loss : e->loss + share * (b->loss - e->loss);
        e->error = isnan(e->error) ? b->error
                                   : e->error + share * (b->error - e->error);
        e->rate = b->rate;
        e->seconds += b->seconds;
        s->frames += b->frames;
        s->seconds += b->seconds;
    }
    s->blocks = s->n_rows;
    return true;
}

/* The epoch and error of model-best.safetensors, as the journal tells: of epochs
 * with equal errors it is the one with the lowest loss. Without that event, of
 * an older run, the first epoch with the lowest error. */
static void find_best(bm_run_summary *s)
{
    const json_t *kept = s->last[BM_RUN_best];
    size_t epoch = 0;

    s->best = s->n_epochs;
    s->best_ler = s->last_ler = NAN;
    for (size_t i = 0; i < s->n_epochs; i++) {
        double ler = fmin(s->epochs[i].dev_ler, s->epochs[i].ema_ler);

        if (isnan(ler))
            continue;
        s->last_ler = ler;
        if (isnan(s->best_ler) || ler < s->best_ler) {
            s->best_ler = ler;
            s->best = i;
        }
    }
    if (kept != NULL && epoch_of(kept, 1, &epoch) && epoch <= s->n_epochs) {
        s->best = epoch - 1;
        s->best_ler = bm_event_number_or(kept, "ler", NAN);
    }
}

/* Does a job hold the lock of the run? */
static bool is_locked(const char *directory)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[4200];
    int fd = -1;
    bool locked = false;

    snprintf(path, sizeof path, "%s/run.lock", directory);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    locked = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    close(fd);
    return locked;
}

static size_t epochs_done(const bm_run_summary *s)
{
    const bm_run_block *last = NULL;

    if (s->n_rows == 0)
        return 0;
    last = &s->rows[s->n_rows - 1];
    return last->epoch + ((double)last->block + 1 >= last->blocks_per_epoch);
}

/* out <- the state after an end event. Of a failure the reason is the text of its
 * status. */
static void describe_end(const char *reason, char *out, size_t room)
{
    bool good = bm_is_word_of(reason, "done converged stopped");
    char text[64];

    snprintf(text, sizeof text, "%s%s", good ? "" : "failed: ", reason);
    if (strcmp(reason, bm_status_text(BM_ERR_NUMERIC)) == 0)
        snprintf(text, sizeof text, "diverged");
    bm_printable(text, out, room);
}

static void find_state(bm_run_summary *s)
{
    const json_t *end = s->last[BM_RUN_end];
    const char *reason = json_string_value(json_object_get(end, "reason"));

    if (end == NULL)
        snprintf(s->state, sizeof s->state, "%s",
                 is_locked(s->directory) ? "running" : "killed");
    else
        describe_end(reason != NULL ? reason : "?", s->state, sizeof s->state);
    s->epochs_done = epochs_done(s);
    if (end != NULL && json_is_integer(json_object_get(end, "epochs")))
        s->epochs_done = bm_event_count(end, "epochs");
}

/* From the journal or, of an old run, from config.ini; 0: not known. */
static size_t epochs_wanted(const char *directory, const json_t *start)
{
    char path[4200];
    bm_config *config = NULL;
    size_t wanted = 0;

    if (json_is_integer(json_object_get(start, "epochs")))
        return bm_event_count(start, "epochs");
    snprintf(path, sizeof path, "%s/config.ini", directory);
    if (bm_config_new(&config) == BM_OK &&
        bm_config_read(config, path) == BM_OK) {
        const char *text = bm_config_text(config, "train", "epochs");
        wanted = text != NULL ? strtoul(text, NULL, 10) : 0;
    }
    bm_config_free(config);
    return wanted;
}

bm_status bm_run_summary_read(bm_run_summary *s, const char *directory)
{
    reading r = {s, true};
    bm_status status = BM_OK;

    *s = (bm_run_summary){.test_ler = NAN, .ranks = NAN};
    snprintf(s->directory, sizeof s->directory, "%s", directory);
    status = bm_journal_events(directory, add_event, &r);
    if (status == BM_OK && (!r.whole || !add_up(s)))
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for the journal of %s",
                         directory);
    if (status != BM_OK) {
        bm_run_summary_free(s);
        return status;
    }
    if (isnan(s->ranks))
        s->ranks = bm_event_number_or(s->last[BM_RUN_start], "ranks", NAN);
    find_best(s);
    find_state(s);
    s->epochs_wanted = epochs_wanted(directory, s->last[BM_RUN_start]);
    return BM_OK;
}

void bm_run_summary_free(bm_run_summary *s)
{
    for (size_t i = 0; i < BM_RUN_EVENTS_COUNT; i++)
        json_decref(s->last[i]);
    free(s->rows);
    free(s->epochs);
    *s = (bm_run_summary){0};
}

const char *bm_run_text(const bm_run_summary *s, const char *key)
{
    const char *text =
        json_string_value(json_object_get(s->last[BM_RUN_start], key));

    return text != NULL ? text : "?";
}
