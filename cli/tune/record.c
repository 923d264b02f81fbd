/* record.c - the directory of a search: its configuration, and the journal of
 * results. */
#include "cli/report/journal_events.h"
#include "cli/tune/tuning.h"
#include "core/file/file.h"
#include "core/file/file_lock.h"
#include "core/grow.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void name(const bm_tuning *t, const char *file, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%s", t->directory, file);
}

/* The budget may grow, and what does not change trials. */
static bool may_change(const char *section, const char *key)
{
    char text[100];

    snprintf(text, sizeof text, "%s.%s", section, key);
    return bm_is_word_of(
        text, "tune.epochs tune.minutes tune.trials tune.finalists tune.seeds "
              "data.test train.keep train.checkpoint_every "
              "train.checkpoint_copies job.exchange job.threads job.bind "
              "job.trace job.metrics job.tensorboard job.audit job.start_limit "
              "job.hang_limit job.hang_factor");
}

typedef struct comparison {
    char list[2048];
    int differing;
} comparison;

static void take_difference(void *self, const char *section, const bm_option *o,
                            const char *was, const char *is)
{
    comparison *c = self;

    if (may_change(section, o->key))
        return;
    c->differing++;
    snprintf(c->list + strlen(c->list), sizeof c->list - strlen(c->list),
             "\n  %s.%s: was %s, now %s", section, o->key,
             was[0] != '\0' ? was : "not set", is[0] != '\0' ? is : "not set");
}

/* The settings in which a file differs from a configuration. */
static bm_status compare(const char *path, const bm_config *now,
                         comparison *out)
{
    bm_config *then = NULL;
    bm_status status = BM_OK;

    *out = (comparison){0};
    BM_TRY_DONE(bm_config_new(&then));
    BM_TRY_DONE(bm_config_read(then, path));
    bm_config_compare(then, now, bm_train_sections(), take_difference, out);
done:
    bm_config_free(then);
    return status;
}

static bm_status check_config(const bm_tuning *t, const char *path)
{
    comparison c;

    BM_TRY(compare(path, t->config, &c));
    return c.differing == 0
               ? BM_OK
               : BM_FAIL(BM_ERR_CONFIG,
                         "%s was begun with other settings:%s\nGive another "
                         "--out, or use the settings in %s",
                         t->directory, c.list, path);
}

bm_status bm_record_check(const bm_tuning *t, const char *path,
                          const bm_config *trial)
{
    struct stat info;
    comparison c;

    if (stat(path, &info) != 0)
        return BM_OK;
    BM_TRY(compare(path, trial, &c));
    return c.differing == 0
               ? BM_OK
               : BM_FAIL(BM_ERR_CONFIG,
                         "%s: this version of bmuf chooses other settings than "
                         "the one that began the search:%s\nContinue with that "
                         "one, or give another --out than %s",
                         path, c.list, t->directory);
}

static bm_status keep(bm_tuning *t, const bm_tune_result *r)
{
    BM_TRY(bm_grow(&t->results, t->n_results, &t->room_results,
                   sizeof *t->results));
    t->results[t->n_results++] = *r;
    return BM_OK;
}

enum { DIGEST = 20 };

typedef struct reading {
    bm_tuning *t;
    char train[DIGEST], dev[DIGEST]; /* of the sets then; "": not known */
    bm_status status;
} reading;

static void copy_text(const json_t *event, const char *key, char *out,
                      size_t room)
{
    const char *text = json_string_value(json_object_get(event, key));

    snprintf(out, room, "%s", text != NULL ? text : "");
}

static void take_event(void *self, const char *kind, json_t *event)
{
    reading *into = self;
    bm_tune_result r = {
        .job = {bm_event_count(event, "trial"),
                (int)bm_event_count(event, "rung"),
                (long)bm_event_count(event, "seed")},
        .score = bm_event_number_or(event, "score", INFINITY),
        .ler = bm_event_number_or(event, "ler", NAN),
        .loss = bm_event_number_or(event, "loss", NAN),
        .seconds = bm_event_number_or(event, "seconds", 0),
        .cluster_s = bm_event_number_or(event, "cluster_s", NAN),
        .target_s = bm_event_number_or(event, "target_s", NAN),
        .trained = (long)bm_event_number_or(event, "trained", -1),
        .spent = bm_event_number(event, "spent")};

    if (strcmp(kind, "given_apart") == 0)
        into->t->given_apart = true;
    if (strcmp(kind, "first_rung") == 0)
        into->t->first_rung = (long)bm_event_count(event, "epochs");
    if (strcmp(kind, "data") == 0) {
        copy_text(event, "train", into->train, DIGEST);
        copy_text(event, "dev", into->dev, DIGEST);
    }
    if (strcmp(kind, "result") != 0 || into->status != BM_OK)
        return;
    copy_text(event, "state", r.state, sizeof r.state);
    copy_text(event, "reason", r.reason, sizeof r.reason);
    if (bm_record_find(into->t, r.job) == NULL)
        into->status = keep(into->t, &r);
}

static bm_status read_journal(reading *into, const char *directory)
{
    char path[PATH_MAX];
    struct stat info;

    name(into->t, "record/journal.jsonl", path);
    if (stat(path, &info) != 0)
        return BM_OK;
    BM_TRY(bm_journal_events(directory, take_event, into));
    return into->status;
}

/* As bmuf train prints it. */
static const char *digest_of(const bm_dataset *d, char out[DIGEST])
{
    snprintf(out, DIGEST, "%016llx", (unsigned long long)d->hash);
    return out;
}

static bm_status check_set(const bm_tuning *t, const char *key,
                           const bm_dataset *d, const char *then)
{
    char now[DIGEST];

    if (then[0] == '\0' || strcmp(digest_of(d, now), then) == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s: %s has digest %s, but the set with which %s was begun "
                   "had %s, and errors on other data cannot be compared; put "
                   "that set back, or give another --out",
                   key, d->directory, now, t->directory, then);
}

/* The sets must be those with which the search began. */
static bm_status check_data(const reading *then)
{
    const bm_tuning *t = then->t;
    char train[DIGEST], dev[DIGEST];

    BM_TRY(check_set(t, "data.train", t->train, then->train));
    BM_TRY(check_set(t, "data.dev", t->dev, then->dev));
    if (then->dev[0] == '\0')
        bm_journal_write(t->journal, "data",
                         (bm_field[]){{"train", 0, digest_of(t->train, train)},
                                      {"dev", 0, digest_of(t->dev, dev)},
                                      {0}});
    return BM_OK;
}

/* A directory is that of a search if it is empty, or has its record. */
static bool is_search(const bm_tuning *t, const char *record)
{
    struct stat info;

    return stat(record, &info) == 0 ||
           rmdir(t->directory) == 0; /* it is made again */
}

bool bm_record_exists(const bm_tuning *t)
{
    char path[PATH_MAX];

    name(t, "config.ini", path);
    return access(path, F_OK) == 0;
}

bm_status bm_record_open(bm_tuning *t)
{
    char config[PATH_MAX], record[PATH_MAX], path[PATH_MAX];
    reading then = {.t = t};
    struct stat info;
    bool begun = bm_record_exists(t);

    name(t, "config.ini", config);
    name(t, "record", record);
    name(t, "trials", path);
    if (stat(t->directory, &info) == 0 && !is_search(t, record))
        return BM_FAIL(BM_ERR_CREATE,
                       "%s holds something else than a search; give another "
                       "--out",
                       t->directory);
    BM_TRY(bm_file_make_directory(record));
    BM_TRY(bm_file_lock(&t->lock, t->directory, "tune.lock"));
    BM_TRY(bm_file_make_directory(path));
    if (begun)
        BM_TRY(check_config(t, config));
    BM_TRY(read_journal(&then, record));
    name(t, "record/journal.jsonl", path);
    BM_TRY(bm_journal_open(&t->journal, path));
    BM_TRY(check_data(&then));
    BM_TRY(bm_settings_write(t->config, config));
    if (!begun && t->space.given_apart) {
        t->given_apart = true;
        bm_journal_write(t->journal, "given_apart", (bm_field[]){{0}});
    }
    return BM_OK;
}

void bm_record_close(bm_tuning *t)
{
    bm_journal_close(t->journal);
    bm_file_unlock(t->lock, t->directory, "tune.lock");
    free(t->results);
}

void bm_record_first_rung(const bm_tuning *t)
{
    bm_journal_write(
        t->journal, "first_rung",
        (bm_field[]){{"epochs", (double)t->first_rung, NULL}, {0}});
}

double bm_record_spent(const bm_tuning *t)
{
    double most = 0;

    for (size_t i = 0; i < t->n_results; i++)
        most = fmax(most, t->results[i].spent);
    return most;
}

size_t bm_record_trials(const bm_tuning *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_results; i++)
        if (t->results[i].job.trial >= n)
            n = t->results[i].job.trial + 1;
    return n;
}

const bm_tune_result *bm_record_find(const bm_tuning *t, bm_tune_job job)
{
    for (size_t i = 0; i < t->n_results; i++) {
        const bm_tune_job *other = &t->results[i].job;

        if (other->trial == job.trial && other->rung == job.rung &&
            other->seed == job.seed)
            return &t->results[i];
    }
    return NULL;
}

bm_status bm_record_add(bm_tuning *t, const bm_tune_result *r)
{
    bm_journal_write(t->journal, "result",
                     (bm_field[]){{"trial", (double)r->job.trial, NULL},
                                  {"rung", r->job.rung, NULL},
                                  {"seed", (double)r->job.seed, NULL},
                                  {"score", r->score, NULL},
                                  {"ler", r->ler, NULL},
                                  {"loss", r->loss, NULL},
                                  {"seconds", r->seconds, NULL},
                                  {"cluster_s", r->cluster_s, NULL},
                                  {"target_s", r->target_s, NULL},
                                  {"trained", (double)r->trained, NULL},
                                  {"spent", r->spent, NULL},
                                  {"state", 0, r->state},
                                  {"reason", 0, r->reason},
                                  {0}});
    return keep(t, r);
}
