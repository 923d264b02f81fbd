#include "cli/help/setting_text.h"

#include "cli/settings.h"
#include "comm/code/code.h"

#include <math.h>
#include <string.h>

bool bm_setting_group_at(size_t i, bm_setting_group *out)
{
    const bm_importer_ops *const *all = bm_importer_list();

    *out = (bm_setting_group){0};
    if (i == 0) {
        snprintf(out->verb, sizeof out->verb, "bmuf train CONFIG");
        out->help = "A training run";
        out->sections = bm_train_sections();
        return true;
    }
    while (--i > 0 && *all != NULL)
        all++;
    if (*all == NULL)
        return false;
    snprintf(out->verb, sizeof out->verb, "bmuf pack --%s", (*all)->name);
    out->help = (*all)->help;
    out->pack = true;
    bm_pack_sections(*all, out->own);
    out->sections = out->own;
    return true;
}

static const char *kind(const bm_option *o)
{
    static const char *const kinds[] = {
        [BM_INT] = "integer",
        [BM_FLOAT] = "number",
        [BM_FLAG] = "yes, no",
        [BM_AUTO] = "number, auto",
        [BM_TEXT] = "text",
        [BM_CHOICE] = "",
        [BM_SERIES] = "number or VALUE@EPOCH ..",
    };

    if (o->type == BM_SERIES && strcmp(o->fallback, "auto") == 0)
        return "number, auto or VALUE@EPOCH ..";
    return o->type == BM_CHOICE ? o->unit : kinds[o->type];
}

/* "tree exact mpi " becomes "tree, exact, mpi". */
static void list_words(const char *words, char *out, size_t room)
{
    size_t n = 0;

    for (; *words != '\0' && n + 3 < room; words++)
        if (*words != ' ') {
            out[n++] = *words;
        } else if (words[1] != '\0') {
            out[n++] = ',';
            out[n++] = ' ';
        }
    out[n] = '\0';
}

/* A number in its shortest form: "0", "0.9999", "1e6". */
static const char *bound(double x, char out[24])
{
    char text[24];
    const char *e = NULL;

    if (x >= 1e5 && fmod(x, 1e5) == 0)
        snprintf(text, sizeof text, "%.0e", x);
    else
        snprintf(text, sizeof text, "%.16g", x);
    e = strstr(text, "e+");
    if (e != NULL)
        snprintf(out, 24, "%.*se%s", (int)(e - text), text,
                 e + 2 + strspn(e + 2, "0"));
    else
        snprintf(out, 24, "%s", text);
    return out;
}

void bm_option_values(const bm_option *o, char *out, size_t room)
{
    char words[200], low[24], high[24];

    if (o->type == BM_CHOICE || (o->type == BM_TEXT && o->unit != NULL))
        list_words(o->unit, words, sizeof words);
    else
        snprintf(words, sizeof words, "%s", kind(o));
    if (o->type != BM_CHOICE && (o->min != 0 || o->max != 0))
        snprintf(out, room, "%s, %s to %s%s%s", words, bound(o->min, low),
                 bound(o->max, high), o->unit ? " " : "",
                 o->unit ? o->unit : "");
    else
        snprintf(out, room, "%s%s%s", words,
                 o->type < BM_TEXT && o->unit ? " " : "",
                 o->type < BM_TEXT && o->unit ? o->unit : "");
}

bool bm_choice_at(const bm_option *o, size_t i, char word[64])
{
    const char *at = o->type == BM_CHOICE ? o->unit : "";

    for (; i > 0 && *at != '\0'; i--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    snprintf(word, 64, "%.*s", (int)strcspn(at, " "), at);
    return word[0] != '\0';
}

/* The meaning of the words of some choices. */
static const struct {
    const char *section, *key, *word, *const *help;
} choices[] = {
#define X(name) {"train", "strategy", #name, &bm_strategy_##name.help},
    BM_STRATEGIES(X)
#undef X
#define X(name) {"model", "loss", #name, &bm_loss_##name.help},
        BM_LOSSES(X)
#undef X
#define X(name) {"compress", "code", #name, &bm_code_##name##_baseline.help},
            BM_CODES(X)
#undef X
};

const char *bm_choice_help(const char *section, const char *key,
                           const char *word)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (strcmp(choices[i].section, section) == 0 &&
            strcmp(choices[i].key, key) == 0 &&
            strcmp(choices[i].word, word) == 0)
            return *choices[i].help;
    return NULL;
}

/* Sections without a line here belong to strategies. */
const char *bm_section_about(const char *section)
{
    static const char *const known[][2] = {
        {"data", "Directories of shards, written by `bmuf pack`."},
        {"model", "The network, see [layers.md](layers.md)."},
        {"train", "The strategy and the length of training, see "
                  "[strategies.md](strategies.md)."},
        {"job", "Workers and hardware. The result depends on the number of "
                "workers, not on the number of ranks\n(`-n`)."},
        {"batch", "Mini-batches. Set at most one of the two sizes."},
        {"augment", "Random changes of the sequences that are trained on, see "
                    "[augmentation.md](data/augmentation.md)."},
        {"block", "The data that a worker trains on between two exchanges. Set "
                  "at most one of the three sizes;\n[tuning.md](tuning.md) "
                  "says how to choose it."},
        {"compress",
         "The coding of block updates, see "
         "[strategies.md](strategies.md#compressed-block-updates)."},
        {"sgd", "The local update of every worker, see [sgd.md](sgd.md)."},
        {"tune", "How [bmuf tune](tuning.md) searches; `bmuf train` ignores "
                 "it."},
        {"schedule", "The learning rate over time, see [sgd.md](sgd.md)."},
        {"clock", "The order in which workers reach the server of `asgd`, "
                  "`softsync` and `easgd`, see\n"
                  "[strategies.md](strategies.md)."},
        {"bmuf", "The filter of `train.strategy = bmuf`, see "
                 "[tuning.md](tuning.md) for formulas and gains."},
        {"features", "The computation of features, see "
                     "[features.md](data/features.md)."},
        {"copies",
         "Perturbed copies of recordings, see "
         "[augmentation.md](data/augmentation.md#copies-of-recordings)."},
        {"shard", "The files, see [shards.md](data/shards.md)."},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i][0], section) == 0)
            return known[i][1];
    return bm_strategy_find(section)->help;
}

void bm_plain_text(const char *markdown, char *out, size_t room)
{
    size_t n = 0;

    for (const char *at = markdown; *at != '\0' && n + 1 < room; at++)
        if (*at == ']' && at[1] == '(')
            at += strcspn(at, ")");
        else if (*at == '\n')
            out[n++] = ' ';
        else if (strchr("`[", *at) == NULL)
            out[n++] = *at;
    out[n] = '\0';
}
