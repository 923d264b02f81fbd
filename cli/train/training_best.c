/* training_best.c - keeps the best model on data.dev. */
#include "cli/train/training.h"
#include "core/clock.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ------------------------------------------------------------- */

/* Whether the header has this text. */
static bool has(const bm_st_file *f, const char *key, const char *text)
{
    const char *found = bm_st_text(f, key);

    return found != NULL && strcmp(found, text) == 0;
}

/* Whether the header has this number, in full. */
static bool read_number(const bm_st_file *f, const char *key, double *out)
{
    const char *text = bm_st_text(f, key);
    char *end = NULL;

    if (text == NULL || *text == '\0')
        return false;
    *out = strtod(text, &end);
    return *end == '\0';
}

static void print_manifest(const bm_training *t, char out[20])
{
    snprintf(out, 20, "%016llx", (unsigned long long)t->train->hash);
}

void bm_training_best_read(bm_training *t)
{
    const char *path = t->run->best_path, *data = NULL;
    char manifest[20];
    double epoch = 0;
    bm_best_model best = {0};
    bm_st_file *f = NULL;

    t->best = best;
    if (!bm_training_first(t) || t->dev == NULL || access(path, F_OK) != 0)
        return;
    if (bm_st_open(&f, path, false) != BM_OK) {
        bm_log(BM_WARNING,
               "cannot read the best model, the next one replaces it: %s",
               bm_last_message());
        return;
    }
    print_manifest(t, manifest);
    data = bm_st_text(f, "evaluated");
    if (has(f, "manifest", manifest) && has(f, "dev", t->dev_about) &&
        data != NULL && read_number(f, "epoch", &epoch) && epoch >= 1 &&
        epoch < 1e15 && read_number(f, "dev_ler", &best.ler) &&
        read_number(f, "dev_loss", &best.loss)) {
        best.epoch = (int64_t)epoch;
        snprintf(best.data, sizeof best.data, "%s", data);
        t->best = best;
    }
    bm_st_free(f);
}

/* ---- writing ------------------------------------------------------------- */

static bool better(const bm_best_model *a, const bm_best_model *b)
{
    return b->epoch == 0 || a->ler < b->ler ||
           (a->ler == b->ler && a->loss < b->loss);
}

static bm_status write_best(bm_training *t, const bm_best_model *best,
                            const char *digest)
{
    enum { OWN = 7 };
    char epoch[24], ler[32], loss[32], manifest[20];
    bm_text texts[OWN + BM_RECOGNISER_TEXTS] = {
        {"epoch", epoch},   {"evaluated", best->data}, {"dev_ler", ler},
        {"dev_loss", loss}, {"dev", t->dev_about},     {"manifest", manifest},
        {"digest", digest},
    };

    snprintf(epoch, sizeof epoch, "%lld", (long long)best->epoch);
    snprintf(ler, sizeof ler, "%.17g", best->ler);
    snprintf(loss, sizeof loss, "%.17g", best->loss);
    print_manifest(t, manifest);
    bm_recogniser_texts(&t->net, texts + OWN);
    return bm_model_export(t->run->best_path, bm_training_params(t), t->host,
                           texts);
}

void bm_training_best_offer(bm_training *t, const char *data,
                            const bm_evaluation *e)
{
    bm_best_model now = {.epoch = t->epochs,
                         .ler = bm_evaluation_ler(e),
                         .loss = bm_evaluation_loss(e)};
    double since = bm_clock(), seconds = 0;
    char digest[BM_WEIGHTS_DIGEST];
    bm_status status = BM_OK;

    if (!bm_training_first(t))
        return;
    snprintf(now.data, sizeof now.data, "%s", data);
    if (now.epoch == t->best.epoch && strcmp(now.data, t->best.data) == 0)
        t->best_is_new = true; /* a kill came before its checkpoint */
    if (!better(&now, &t->best))
        return;
    bm_training_digest(t, digest);
    status = write_best(t, &now, digest);
    seconds = bm_clock() - since;
    if (status != BM_OK) {
        bm_log(BM_WARNING, "the best model so far is not kept: %s",
               bm_last_message());
        return;
    }
    t->best = now;
    t->best_is_new = true;
    bm_journal_write(
        t->run->journal, "best",
        (bm_field[]){
            {"epoch", (double)now.epoch, NULL},
            {"block", (double)t->blocks, NULL},
            {"data", 0, data},
            {"ler", now.ler, NULL},
            {"loss", now.loss, NULL},
            {"file", 0, t->run->best_path + strlen(t->run->directory) + 1},
            {"digest", 0, digest},
            {"seconds", seconds, NULL},
            {0}});
}
