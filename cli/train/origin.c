#include "cli/train/origin.h"

#include "cli/train/numbers.h"
#include "core/file/file.h"
#include "core/file/search_folder.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/model/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 }; /* checkpoints of a run */

/* ---- --from RUN[@EPOCH] ---------------------------------------------------- */

/* Cuts "@EPOCH" off run; -1: there is none. */
static long cut_epoch(char *run)
{
    char *at = strrchr(run, '@'), *end = NULL;
    long epoch = -1;

    if (at == NULL || at[1] == '\0' || bm_is_folder(run) ||
        strspn(at + 1, "0123456789") != strlen(at + 1))
        return -1;
    epoch = strtol(at + 1, &end, 10);
    *at = '\0';
    return epoch;
}

/* Reads epochs and blocks done of a checkpoint; false: it is damaged, with `whole`
 * anywhere, otherwise in its header. */
static bool read_done(const char *path, bool whole, double *epoch,
                      double *block)
{
    double numbers[BM_CHECKPOINT_NUMBERS] = {0};
    bm_st_file *f = NULL;
    bm_status status = bm_st_open(&f, path, whole);

    if (status == BM_OK)
        status = bm_checkpoint_numbers(f, path, numbers);
    bm_st_free(f);
    *epoch = numbers[BM_NUMBER_EPOCHS];
    *block = numbers[BM_NUMBER_BLOCKS];
    return status == BM_OK;
}

static bm_status no_epoch(const char *run, long epoch, const char *list)
{
    if (list[0] == '\0')
        return BM_FAIL(BM_ERR_MISSING,
                       "train.from: %s has no checkpoint that can be read; "
                       "give a run that has",
                       run);
    return BM_FAIL(
        BM_ERR_MISSING,
        "train.from: %s has no checkpoint after %s; it has those "
        "after%s. Give one of these epochs, or train that run with a "
        "larger train.keep",
        run, bm_count_noun(epoch, "epoch").text, list);
}

/* The oldest checkpoint with `epoch` epochs done, which is nearest to the end
 * of that epoch; -1: the newest of all. */
static bm_status find_checkpoint(bm_origin *o, const char *run, long epoch)
{
    int64_t blocks[MOST] = {0};
    char directory[4120], path[4200], list[600] = "";
    size_t n = 0;
    bool found = false;

    snprintf(directory, sizeof directory, "%s/checkpoints", run);
    BM_TRY(bm_checkpoint_list(directory, blocks, MOST, &n));
    for (size_t i = 0; i < n && !(found && epoch < 0); i++) {
        double epochs = 0, done = 0;
        size_t at = strlen(list);

        bm_checkpoint_path(directory, blocks[i], path, sizeof path);
        if (!read_done(path, epoch < 0, &epochs, &done)) {
            bm_log(BM_WARNING, "train.from: %s; trying an older one",
                   bm_last_message());
            continue;
        }
        snprintf(list + at, sizeof list - at, "%s epoch %.0f (block %.0f)",
                 at > 0 ? "," : "", epochs, done);
        if (epoch >= 0 && (double)epoch != epochs)
            continue;
        found = true;
        o->epoch = epochs;
        o->block = done;
        memcpy(o->path, path, sizeof path);
    }
    return found ? BM_OK : no_epoch(run, epoch, list);
}

static bm_status find_run(bm_origin *o, const char *text)
{
    char run[4096];
    long epoch = -1;

    snprintf(run, sizeof run, "%s", text);
    epoch = cut_epoch(run);
    if (!bm_is_folder(run))
        return BM_FAIL(BM_ERR_MISSING,
                       "train.from: %s is not the directory of a run", run);
    BM_TRY(bm_search_folder_refuse(run));
    o->branches = true;
    return find_checkpoint(o, run, epoch);
}

/* ---- the model ------------------------------------------------------------- */

static bm_status no_layer(const bm_origin *o, const bm_recogniser *old)
{
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: no layer fits: it has model.net = %s, this network has "
                   "layers %s of other names or sizes; give a model of a "
                   "similar network",
                   o->path, old->settings.net, o->layers.anew);
}

static bm_status check_features(const bm_origin *o, const bm_recogniser *old,
                                bm_recogniser *net, bm_dataset *data)
{
    if (old->features != data->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has %zu features per frame, %s needs %zu; pack it "
                       "with the model's features.* settings",
                       data->directory, data->features, o->path, old->features);
    return bm_recogniser_adopt_features(net, old->features_text, data);
}

static bm_status take(bm_origin *o, const bm_recogniser *old,
                      bm_recogniser *net, bm_dataset *data)
{
    const bm_params *w = bm_model_params(old->model);

    BM_TRY(check_features(o, old, net, data));
    bm_weights_digest(w->w, w->n, o->digest);
    BM_TRY(bm_transfer_layers(
        (bm_trained){w, old->vocab},
        (bm_trained){bm_model_params(net->model), net->vocab}, &o->layers));
    if (o->layers.n_taken == 0 && o->layers.output[0] == '\0')
        return no_layer(o, old);
    return BM_OK;
}

/* The file's weights are read to the host. */
static bm_status take_model(bm_origin *o, bm_recogniser *net, bm_dataset *data)
{
    bm_backend *host = NULL;
    bm_recogniser old = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_backend_open(&host, "cpu", 0));
    status = bm_recogniser_read(&old, host, o->path, 1);
    if (status == BM_OK) {
        status = take(o, &old, net, data);
        bm_recogniser_close(&old);
    }
    bm_backend_close(host);
    return status;
}

/* The run has begun: its features are those of its checkpoint. */
static bm_status adopt(const char *checkpoint, bm_recogniser *net,
                       bm_dataset *data)
{
    bm_st_file *f = NULL;
    char *text = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_st_open(&f, checkpoint, false));
    status = bm_model_text(f, checkpoint, "feature_settings", &text);
    bm_st_free(f);
    if (status == BM_OK)
        status = bm_recogniser_adopt_features(net, text, data);
    free(text);
    return status;
}

static bool is_set(const bm_train_settings *set)
{
    return set->init[0] != '\0' || set->from[0] != '\0';
}

static bm_status find(bm_origin *o, const bm_train_settings *set)
{
    if (set->from[0] != '\0')
        return find_run(o, set->from);
    return bm_recogniser_find(set->init, o->path, sizeof o->path);
}

bm_status bm_origin_find(bm_origin *o, const bm_train_settings *set,
                         const char *newest, bm_comm *comm)
{
    bm_status status = BM_OK;

    *o = (bm_origin){.epoch = NAN, .block = NAN};
    if (!is_set(set) || newest[0] != '\0')
        return BM_OK;
    if (comm == NULL || bm_comm_rank(comm) == 0)
        status = find(o, set);
    if (comm == NULL)
        return status;
    BM_TRY(bm_comm_agree(comm, status));
    return bm_comm_broadcast_bytes(comm, o, sizeof *o, 0);
}

bm_status bm_origin_take(bm_origin *o, const bm_train_settings *set,
                         const char *newest, bm_recogniser *net,
                         bm_dataset *data)
{
    if (!is_set(set))
        return BM_OK;
    return newest[0] != '\0' ? adopt(newest, net, data)
                             : take_model(o, net, data);
}

/* ---- what was done ---------------------------------------------------------- */

void bm_origin_describe(const bm_origin *o,
                        void (*say)(void *self, const char *text), void *self)
{
    const bm_transfer *x = &o->layers;
    char text[BM_TRANSFER_NAMES + sizeof o->path + 40];

    if (o->path[0] == '\0')
        return;
    snprintf(text, sizeof text, "layers taken from %s: %s", o->path,
             x->n_taken > 0 ? x->taken : "none as a whole");
    say(self, text);
    if (x->output[0] != '\0') {
        snprintf(text, sizeof text,
                 "of layer %s the rows of %zu of %s are taken, %zu are "
                 "initialised randomly",
                 x->output, x->symbols_common,
                 bm_count_noun((long long)x->symbols, "symbol").text,
                 x->symbols - x->symbols_common);
        say(self, text);
    }
    if (x->symbols_dropped > 0) {
        snprintf(text, sizeof text,
                 "%s of that model dropped, which the vocabulary of data.train "
                 "lacks; to keep them, pack with the symbols of both",
                 bm_count_noun((long long)x->symbols_dropped, "symbol").text);
        say(self, text);
    }
    if (x->n_anew > 0) {
        snprintf(text, sizeof text, "layers initialised randomly: %s", x->anew);
        say(self, text);
    }
}
