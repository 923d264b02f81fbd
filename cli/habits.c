#include "cli/habits.h"

#include "cli/help/setting_text.h"
#include "core/text/words.h"

#include <stdio.h>
#include <string.h>

/* Names of settings in PyTorch, torchrun, ESPnet, RETURNN, PyLaia and Kaldi; their
 * choices, and those of fairseq and CNTK. */
const bm_foreign_word bm_habit_words[] = {
    {"", "lr learningrate baselr initiallr", "train.rate"},
    {"", "epoch epochs maxepoch maxepochs numepochs nepochs", "train.epochs"},
    {"", "batchsize trainbatchsize", "batch.sequences"},
    {"", "batchbins maxtokens", "batch.frames"},
    {"", "accumgrad updatefreq accumulategradbatches", "batch.accumulate"},
    {"", "optim optimizer", "sgd.update"},
    {"", "gradclip clipgrad clipnorm gradientclipval", "sgd.clip"},
    {"", "l2", "sgd.weight_decay"},
    {"", "scheduler lrscheduler", "schedule.kind"},
    {"", "warmupsteps warmupupdates", "schedule.warmup"},
    {"", "patience earlystoppingpatience", "schedule.stop_after"},
    {"", "nmels nummelbins", "features.mels"},
    {"", "samplefrequency samplerate fs", "features.rate"},
    {"", "workers worldsize nproc nprocpernode", "job.workers"},
    {"", "eta blockmomentum blockmomentumpersync", "bmuf.momentum"},
    {"", "blockmomentumastimeconstant", "bmuf.time_constant"},
    {"", "zeta blocklr blocklearningrate", "bmuf.rate"},
    {"", "blocksizeperworker", "block.frames_per_worker"},
    {"", "globalsynciter", "block.steps"},
    {"", "cv val valid", "data.dev"},
    {"batch.order", "shuffle shuffled", "random"},
    {"batch.order", "ascending", "sorted"},
    {"batch.order", "default", "file"},
    {"job.device", "gpu", "cuda"},
    {"job.precision", "float float32 32", "fp32"},
    {"job.precision", "bfloat16", "bf16"},
    {"model.loss", "ctcloss", "ctc"},
    {"model.loss", "ce xent crossentropyloss", "cross_entropy"},
    {"schedule.kind", "cosineannealing cosineannealinglr", "cosine"},
    {"schedule.kind", "constantlr none", "constant"},
    {"schedule.kind", "exponentiallr", "exponential"},
    {"schedule.kind", "noamlr warmuplr inversesqrt", "noam"},
    {"schedule.kind", "onecyclelr", "onecycle"},
    {"schedule.kind", "plateau reducelronplateau newbobabs newbobrel",
     "newbob, which decays the rate where the error of data.dev stays"},
    {"sgd.update", "adam", "adamw, which is Adam with sgd.weight_decay = 0"},
    {"sgd.update", "sgd", "momentum, which is SGD with sgd.momentum = 0"},
    {"sgd.update", "nag nesterov", "momentum, and sgd.nesterov = yes"},
    {"train.rate", "@",
     "[schedule] changes the rate over epochs, and bmuf train --from RUN goes "
     "on with another one"},
    {"train.strategy", "blockmomentum blockmomentumsgd", "bmuf"},
    {"train.strategy", "ddp horovod dataparallelsgd", "ssgd"},
    {"train.strategy", "localsgd modelaveraging modelaveragingsgd", "average"},
    {"train.strategy", "dataparallelasgd", "asgd"},
    {0},
};

static const struct {
    const char *verb; /* NULL: any */
    const char *option, *instead;
} options[] = {
    {NULL, "-np", "give -n N"},
    {NULL, "--nproc", "give -n N"},
    {"train", "--resume",
     "the same command with the same --out resumes the run"},
    {"train", "--num-workers",
     "a thread of each rank reads ahead; job.workers is how many train"},
    {"train", "--config", "CONFIG is given without an option"},
    {"explain", "--config", "CONFIG is given without an option"},
    {"tune", "--config", "CONFIG is given without an option"},
    {"train", "--conf", "CONFIG is given without an option"},
};

static bool take_named(const bm_setting_group *g, const char *word, char *out,
                       size_t room)
{
    int found = 0;

    for (const bm_section *s = g->sections; s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            char whole[100];

            snprintf(whole, sizeof whole, "%s.%s", s->name, o->key);
            if (strcmp(word, whole) != 0 && strcmp(word, o->key) != 0)
                continue;
            snprintf(out, room, "%s", whole);
            found++;
        }
    if (found != 1)
        out[0] = '\0';
    return found == 1;
}

static bool find(const char *name, bool pack, char *out, size_t room)
{
    bm_setting_group g;

    out[0] = '\0';
    for (size_t i = 0; bm_setting_group_at(i, &g); i++)
        if (g.pack == pack && take_named(&g, name, out, room))
            return true;
    return false;
}

bool bm_habit_setting(const char *word, bool pack, char *out, size_t room)
{
    const char *dot = strrchr(word, '.');
    const char *key = dot != NULL ? dot + 1 : word;
    char name[100], plain[100];

    snprintf(name, sizeof name, "%s", word);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    if (dot != NULL && find(name, pack, out, room))
        return true;
    bm_word_plain(key, strlen(key), plain, sizeof plain);
    for (const bm_foreign_word *w = bm_habit_words; w->setting != NULL; w++)
        if (w->setting[0] == '\0' && bm_is_word_of(plain, w->theirs))
            snprintf(name, sizeof name, "%s", w->ours);
    return find(name, pack, out, room);
}

/* Does its --set take all settings of training, or those of pack? */
static bool has_settings(const bm_verb *verb)
{
    return bm_is_word_of(verb->name,
                         "train explain tune scale show doctor pack");
}

bool bm_habit_hint(const bm_verb *verb, const char *option, char *out,
                   size_t room)
{
    bool pack = strcmp(verb->name, "pack") == 0;
    char near[100];

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(option, options[i].option) == 0 &&
            (options[i].verb == NULL ||
             strcmp(verb->name, options[i].verb) == 0)) {
            snprintf(out, room, "%s", options[i].instead);
            return true;
        }
    if (strncmp(option, "--", 2) != 0 || !has_settings(verb) ||
        !bm_habit_setting(option + 2, pack, near, sizeof near))
        return false;
    snprintf(out, room, "did you mean --set %s=VALUE", near);
    return true;
}
