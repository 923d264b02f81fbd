/*
 * reader.c - a thread fills a ring of three blocks: the one in use and two
 * ahead of it. Three counters define the owner of a block:
 *
 *     released <= taken <= filled <= released + 3
 *
 * Blocks [released, taken) belong to the caller (at most one), blocks [taken,
 * filled) are ready, and the thread owns the rest. A failure is returned with
 * the block that could not be read.
 */
#include "io/batch/reader.h"

#include "core/log.h"
#include "core/trace/span.h"
#include "io/batch/collate.h"
#include "io/shard/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 3, LOGGED = 10, LONGEST_ERROR = 4096 };

/* A block of the workers hosted here. */
typedef struct block {
    bm_position at;
    bm_status status;
    char error[LONGEST_ERROR]; /* of the thread */
    int64_t steps;
    bm_share *shares;    /* [last - first], then those that are audited */
    int64_t bad[LOGGED]; /* sequences with NaN or infinite features */
    int n_bad;
} block;

struct bm_reader {
    bm_dataset *d; /* borrowed */
    bm_reader_settings set;
    bool per_frame;
    bm_augmenter *augmenter;   /* used by the thread; NULL: none */
    bm_sound_augmenter *sound; /* likewise */
    int64_t epoch; /* at which it was opened; with set.once the only one */
    int64_t blocks[BM_SERIES_MOST]; /* of an epoch, see bm_plan_changes */
    bm_collator collator;
    bm_position next; /* the next block of the ring */
    double stall;
    int64_t logged[LOGGED]; /* skipped sequences */
    int n_logged;

    pthread_mutex_t shards; /* guards the shards of the data set */
    pthread_mutex_t lock;   /* guards the ring, its counters and stop */
    pthread_cond_t changed; /* a counter or stop */
    block ring[RING];
    uint64_t filled, taken, released;
    bool stop;

    pthread_t thread;
    bool running;
    bm_position from; /* where the thread starts */
    bm_plan *plan;    /* of epoch plan_epoch; used by the thread */
    int64_t plan_epoch;
};

/* ---- positions --------------------------------------------------------- */

static bool same(bm_position a, bm_position b)
{
    return a.epoch == b.epoch && a.block == b.block;
}

int64_t bm_reader_blocks_of(const bm_reader *r, int64_t epoch)
{
    bm_series changes = bm_plan_changes(&r->set.plan);

    return r->blocks[bm_series_index(&changes, (double)epoch)];
}

/* The first block at or after a position. */
static bm_position settle(const bm_reader *r, bm_position at)
{
    return at.block < bm_reader_blocks_of(r, at.epoch)
               ? at
               : (bm_position){at.epoch + 1, 0};
}

static bm_position after(const bm_reader *r, bm_position at)
{
    return settle(r, (bm_position){at.epoch, at.block + 1});
}

static bool exists(const bm_reader *r, bm_position at)
{
    return at.block < bm_reader_blocks_of(r, at.epoch) &&
           (!r->set.once || at.epoch == r->epoch);
}

/* ---- whose shares -------------------------------------------------------- */

static int hosted(const bm_reader *r)
{
    return r->set.last - r->set.first;
}

static bool is_hosted(const bm_reader *r, int worker)
{
    return worker >= r->set.first && worker < r->set.last;
}

/* Workers whose shares have a place in each block. */
static int places(const bm_reader *r)
{
    bool audits = r->set.audit.fraction > 0;

    return hosted(r) + (audits ? r->set.audit_last - r->set.audit_first : 0);
}

static bm_share *share_of(const bm_reader *r, const block *b, int worker)
{
    int place = is_hosted(r, worker) ? worker - r->set.first
                                     : hosted(r) + worker - r->set.audit_first;

    BM_ASSERT(place >= 0 && place < places(r));
    return &b->shares[place];
}

/* ---- the thread -------------------------------------------------------- */

static bool stopping(bm_reader *r)
{
    bool stop = false;

    pthread_mutex_lock(&r->lock);
    stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop;
}

/* Sequences with NaN or infinite features get 0 frames: the loss skips and
 * counts them. Without frames there are no targets of frames. */
static void screen(const bm_reader *r, block *b, const bm_share *s, size_t i)
{
    int64_t sequence = r->d->units[s->units[i]].first;

    for (size_t k = s->begin[i].sequences; k < s->begin[i + 1].sequences;
         k++, sequence++) {
        bm_sample *x = &s->samples[k];

        if (bm_stored_finite(&x->x, (size_t)x->frames, r->d->features))
            continue;
        x->frames = 0;
        if (r->per_frame)
            x->labels = 0;
        if (b->n_bad < LOGGED)
            b->bad[b->n_bad++] = sequence;
    }
}

static bm_status read_share(bm_reader *r, block *b, bm_share *s)
{
    const bm_changes changes = {.sound = r->sound,
                                .augmenter = r->augmenter,
                                .fit = r->set.fit,
                                .seed = r->set.seed,
                                .epoch = b->at.epoch};

    for (size_t i = 0; i < s->n_units && !stopping(r); i++) {
        bm_status status = BM_OK;

        pthread_mutex_lock(&r->shards);
        status = bm_share_read(s, r->d, i);
        pthread_mutex_unlock(&r->shards);
        BM_TRY(status);
        screen(r, b, s, i);
        if (r->augmenter != NULL)
            BM_TRY(bm_share_augment(s, r->d, i, &changes));
    }
    return BM_OK;
}

static bm_status plan_epoch(bm_reader *r, int64_t epoch)
{
    bm_plan *p = NULL;

    if (r->plan != NULL && r->plan_epoch == epoch)
        return BM_OK;
    BM_TRY(bm_plan_new(&p, r->d, &r->set.plan, r->set.workers, r->set.seed,
                       epoch));
    bm_plan_free(r->plan);
    r->plan = p;
    r->plan_epoch = epoch;
    return BM_OK;
}

static bm_status read_worker(bm_reader *r, block *b, int worker)
{
    bm_share *s = share_of(r, b, worker);

    BM_TRY(bm_share_plan(s, r->d, r->plan, b->at.block, worker));
    return read_share(r, b, s);
}

/* Bad sequences of audited shares are logged by their own rank. */
static bm_status read_audited(bm_reader *r, block *b)
{
    int n_bad = b->n_bad;

    if (!bm_audited(&r->set.audit, b->at))
        return BM_OK;
    for (int k = r->set.audit_first; k < r->set.audit_last; k++)
        if (!is_hosted(r, k))
            BM_TRY(read_worker(r, b, k));
    b->n_bad = n_bad;
    return BM_OK;
}

static bm_status read_block(bm_reader *r, block *b)
{
    b->n_bad = 0;
    BM_TRY(plan_epoch(r, b->at.epoch));
    BM_TRY(bm_plan_steps(r->plan, b->at.block, &b->steps));
    for (int k = r->set.first; k < r->set.last; k++)
        BM_TRY(read_worker(r, b, k));
    return read_audited(r, b);
}

/* Waits until the ring has space. Returns the block to fill, or NULL to stop.
 * */
static block *wait_for_space(bm_reader *r)
{
    block *b = NULL;

    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->filled - r->released == RING)
        pthread_cond_wait(&r->changed, &r->lock);
    if (!r->stop)
        b = &r->ring[r->filled % RING];
    pthread_mutex_unlock(&r->lock);
    return b;
}

static void hand_over(bm_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->filled++;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void *read_ahead(void *self)
{
    bm_reader *r = self;
    bm_status status = BM_OK;

    bm_span_thread("reader");
    for (bm_position at = r->from; status == BM_OK && exists(r, at);
         at = after(r, at)) {
        block *b = wait_for_space(r);
        bm_span span;

        if (b == NULL)
            break;
        b->at = at;
        span = bm_span_begin("read");
        b->status = status = read_block(r, b);
        (void)bm_span_end(span);
        if (status != BM_OK)
            snprintf(b->error, sizeof b->error, "%s", bm_last_message());
        hand_over(r);
    }
    return NULL;
}

static void stop_thread(bm_reader *r)
{
    if (!r->running)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    r->running = false;
}

/* Restarts reading at a block that exists. */
static bm_status start_thread(bm_reader *r, bm_position from)
{
    stop_thread(r);
    r->filled = r->taken = r->released = 0;
    r->stop = false;
    r->from = r->next = from;
    if (pthread_create(&r->thread, NULL, read_ahead, r) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "cannot start a thread to read %s",
                       r->d->directory);
    r->running = true;
    return BM_OK;
}

/* ---- the caller's side ------------------------------------------------- */

/* Their number follows from their size and workers, not from the order of an
 * epoch. */
static bm_status count_blocks(bm_reader *r)
{
    bm_series changes = bm_plan_changes(&r->set.plan);

    for (int i = 0; i < changes.n; i++) {
        BM_TRY(plan_epoch(r, (int64_t)changes.from[i]));
        r->blocks[i] = bm_plan_blocks(r->plan);
    }
    return BM_OK;
}

static bm_status open_augmenter(bm_reader *r)
{
    const bm_augment_settings *set = r->set.augment;
    bm_layout layout;

    r->set.augment = NULL; /* borrowed until now */
    if (set == NULL || !bm_augment_any(set) || r->d->n_shards == 0)
        return BM_OK;
    layout =
        bm_layout_of(bm_shard_features_text(r->d->shards[0]), r->d->features);
    BM_TRY(bm_sound_augmenter_open(&r->sound, r->d, &r->shards, set));
    return bm_augmenter_new(&r->augmenter, set, &layout, r->per_frame);
}

/* What the caller of a share sets. */
static void set_up(const bm_reader *r, bm_share *s)
{
    bool floats = bm_on_host(r->collator.be) || r->d->norm.dim > 0 ||
                  r->augmenter != NULL;

    s->packed = !floats;
    s->per_frame = r->per_frame;
    s->stretch = r->augmenter != NULL ? bm_augmenter_stretch(r->augmenter) : 1;
}

static bm_status prepare(bm_reader *r, bm_position from)
{
    size_t n = (size_t)places(r);

    BM_TRY(open_augmenter(r));
    for (int i = 0; i < RING; i++) {
        r->ring[i].shares = calloc(n + 1, sizeof(bm_share));
        if (r->ring[i].shares == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu shares", n);
        for (size_t k = 0; k < n; k++)
            set_up(r, &r->ring[i].shares[k]);
    }
    BM_TRY(count_blocks(r));
    BM_TRY(plan_epoch(r, from.epoch));
    r->epoch = from.epoch;
    r->next = settle(r, from);
    return exists(r, r->next) ? start_thread(r, r->next) : BM_OK;
}

bm_status bm_reader_open(bm_reader **out, bm_dataset *d, bm_backend *be,
                         const bm_reader_settings *settings, bm_position from)
{
    bm_reader *r = calloc(1, sizeof *r);
    bm_status status = BM_OK;

    BM_ASSERT(from.epoch >= 0 && from.block >= 0);
    if (r == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a reader");
    pthread_mutex_init(&r->shards, NULL);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->d = d;
    r->set = *settings;
    r->per_frame = d->n_shards > 0 && bm_shard_per_frame(d->shards[0]);
    r->collator = (bm_collator){.be = be, .d = d};
    BM_TRY_DONE(prepare(r, from));
    *out = r;
    r = NULL;
done:
    bm_reader_close(r);
    return status;
}

uint64_t bm_reader_folders_digest(const bm_reader *r)
{
    return bm_sound_augmenter_digest(r->sound);
}

void bm_reader_close(bm_reader *r)
{
    if (r == NULL)
        return;
    stop_thread(r);
    for (int i = 0; i < RING; i++) {
        for (int k = 0; r->ring[i].shares != NULL && k < places(r); k++)
            bm_share_free(&r->ring[i].shares[k]);
        free(r->ring[i].shares);
    }
    bm_collator_free(&r->collator);
    bm_augmenter_free(r->augmenter);
    bm_sound_augmenter_close(r->sound);
    bm_plan_free(r->plan);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->shards);
    free(r);
}

/* The block in use, or NULL. Only the caller changes taken and released. */
static const block *current(const bm_reader *r)
{
    return r->taken > r->released ? &r->ring[r->released % RING] : NULL;
}

static void release(bm_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->released = r->taken;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static const block *take(bm_reader *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->filled == r->taken)
        pthread_cond_wait(&r->changed, &r->lock);
    r->taken++;
    pthread_mutex_unlock(&r->lock);
    return current(r);
}

/* Logs each sequence once in a run, and at most LOGGED of them. */
static void log_skipped(bm_reader *r, int64_t sequence)
{
    if (r->n_logged == LOGGED)
        return;
    for (int i = 0; i < r->n_logged; i++)
        if (r->logged[i] == sequence)
            return;
    r->logged[r->n_logged++] = sequence;
    bm_log(BM_WARNING, "%s: %s has NaN or infinite features; skipped%s",
           r->d->directory, bm_reader_tag(r, sequence),
           r->n_logged == LOGGED ? "; more will not be logged" : "");
}

/* Waits for a block that exists. */
static bm_status wait_for(bm_reader *r, bm_position at, const block **out)
{
    bm_span span = bm_span_begin("stall");
    bm_status status = BM_OK;

    if (!r->running || !same(r->next, at))
        status = start_thread(r, at);
    if (status == BM_OK) {
        *out = take(r);
        r->next = after(r, at);
    }
    r->stall += bm_span_end(span);
    return status;
}

bm_status bm_reader_block(bm_reader *r, bm_position at, int64_t *steps)
{
    const block *b = current(r);

    BM_ASSERT(at.epoch >= 0 && at.block >= 0);
    if (b == NULL || !same(b->at, at)) {
        release(r);
        if (!exists(r, at)) {
            *steps = 0;
            return BM_OK;
        }
        BM_TRY(wait_for(r, at, &b));
        for (int i = 0; i < b->n_bad; i++)
            log_skipped(r, b->bad[i]);
    }
    if (b->status != BM_OK) {
        stop_thread(r); /* it has ended; another call restarts it */
        release(r);
        return BM_FAIL(b->status, "%s", b->error);
    }
    *steps = b->steps;
    return BM_OK;
}

int64_t bm_reader_steps(const bm_reader *r, int worker)
{
    const block *b = current(r);

    return b != NULL ? (int64_t)share_of(r, b, worker)->cut.n_batches : 0;
}

bool bm_reader_audited(const bm_reader *r)
{
    const block *b = current(r);

    return b != NULL && bm_audited(&r->set.audit, b->at);
}

bm_status bm_reader_batch(bm_reader *r, int worker, int64_t step,
                          const bm_batch **out)
{
    const block *b = current(r);

    BM_ASSERT(step >= 0);
    if (b == NULL) {
        *out = NULL;
        return BM_OK;
    }
    return bm_collate(&r->collator, share_of(r, b, worker), step, out);
}

double bm_reader_frames(const bm_reader *r, int worker)
{
    const block *b = current(r);
    double frames = 0;

    if (b != NULL) {
        const bm_share *s = share_of(r, b, worker);

        for (size_t i = 0; i < s->cut.n_sequences; i++)
            frames += s->samples[i].frames;
    }
    return frames;
}

int64_t bm_reader_blocks(const bm_reader *r)
{
    return bm_reader_blocks_of(r, r->epoch);
}

bm_epoch_size bm_reader_epoch(const bm_reader *r, int64_t epoch)
{
    return (bm_epoch_size){(double)bm_reader_blocks_of(r, epoch),
                           (double)r->d->frames};
}

double bm_reader_stall(bm_reader *r)
{
    double stall = r->stall;

    r->stall = 0;
    return stall;
}

const char *bm_reader_tag(bm_reader *r, int64_t sequence)
{
    const char *tag = "?";

    pthread_mutex_lock(&r->shards);
    if (bm_dataset_tag(r->d, sequence, &tag) != BM_OK)
        tag = "?";
    pthread_mutex_unlock(&r->shards);
    return tag;
}
