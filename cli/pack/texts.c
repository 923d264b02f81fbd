#include "cli/pack/texts.h"

#include "cli/report/runs/describe.h"
#include "core/file/path.h"
#include "core/text/words.h"
#include "io/model/model_file.h"
#include "io/shard/shard_list.h"
#include "recognise/recogniser.h"

#include <stdlib.h>
#include <string.h>

/* The first shard at `path`; NULL: there is none. */
static bm_status open_first(bm_shard **out, const char *path)
{
    char **paths = NULL;
    size_t n = 0;
    bm_status status = bm_shard_list(path, &paths, &n);

    if (status == BM_ERR_MISSING)
        return BM_OK;
    BM_TRY(status);
    if (bm_ends_with(paths[0], BM_SHARD_SUFFIX))
        status = bm_shard_open(out, paths[0]);
    bm_shard_list_free(paths, n);
    return status;
}

/* Takes vocabulary, features text and form of shards, if there are any. */
static bm_status follow_shards(bm_texts *t, const char *path)
{
    bm_shard *shard = NULL;
    bm_status status = BM_OK;

    BM_TRY(open_first(&shard, path));
    if (shard == NULL)
        return BM_OK;
    t->form = bm_shard_text_form(shard);
    BM_TRY_DONE(bm_vocab_copy(&t->vocab, bm_shard_vocab(shard)));
    t->features_text = strdup(bm_shard_features_text(shard));
    if (t->features_text == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory to pack like %s", path);
done:
    bm_shard_close(shard);
    return status;
}

/* Takes vocabulary and features text of a model. */
static bm_status follow_model(bm_texts *t, const char *path)
{
    bool checkpoint = false;
    char *symbols = NULL, *units = NULL;
    bm_st_file *f = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_model_open(&f, path, &checkpoint));
    BM_TRY_DONE(bm_model_text(f, path, "vocabulary", &symbols));
    BM_TRY_DONE(bm_model_text(f, path, "units", &units));
    BM_TRY_DONE(bm_model_text(f, path, "feature_settings", &t->features_text));
    status = bm_vocab_parse(&t->vocab, symbols, strcmp(units, "words") == 0);
done:
    free(symbols);
    free(units);
    bm_st_free(f);
    return status;
}

/* A vocabulary file of a data set does not tell how the texts were normalised,
 * but the shards beside it do. */
static bm_status read_file(bm_texts *t, const char *path, bool words)
{
    char directory[PATH_MAX];
    bm_shard *shard = NULL;

    BM_TRY(bm_path_folder(directory, path));
    BM_TRY(open_first(&shard, directory));
    if (shard != NULL)
        t->form = bm_shard_text_form(shard);
    bm_shard_close(shard);
    return bm_vocab_read(&t->vocab, path, words);
}

static const char *kind(bool words)
{
    return words ? "words" : "characters";
}

static bm_status get_vocab(bm_texts *t, const char *path, const char *units,
                           bool usual)
{
    bool table = path != NULL && bm_vocab_is_table(path);
    bool words =
        units != NULL ? strcmp(units, kind(true)) == 0 : usual || table;
    char model[4200];

    t->learned = path == NULL;
    if (path == NULL)
        return bm_vocab_new(&t->vocab, words);
    if (bm_is_run(path)) {
        BM_TRY(bm_recogniser_find(path, model, sizeof model));
        path = model;
    }
    if (bm_ends_with(path, ".safetensors"))
        BM_TRY(follow_model(t, path));
    else
        BM_TRY(follow_shards(t, path));
    t->recorded = t->vocab != NULL;
    if (!t->recorded)
        return read_file(t, path, words);
    if (units != NULL && words != bm_vocab_words(t->vocab))
        return BM_FAIL(
            BM_ERR_ARG,
            "pack: --units %s, but the symbols of --vocab %s are %s; remove "
            "--units",
            units, path, kind(!words));
    return BM_OK;
}

bm_status bm_texts_open(bm_texts *t, const bm_arguments *a, bool words)
{
    const char *path = bm_argument(a, "vocab"), *units = NULL, *form = NULL;

    BM_TRY(bm_argument_word(a, "units", "words characters", NULL, &units));
    BM_TRY(bm_argument_word(a, "text", "nfc none", NULL, &form));
    BM_TRY(get_vocab(t, path, units, words));
    if (form != NULL && t->form != NULL && strcmp(form, t->form) != 0)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --text %s, but the texts of --vocab %s were "
                       "packed with --text %s; remove --text",
                       form, path, t->form);
    if (form != NULL)
        t->form = strcmp(form, "nfc") == 0 ? "nfc" : "none";
    else if (t->form == NULL)
        t->form = bm_vocab_is_nfc(t->vocab) ? "nfc" : "none";
    return BM_OK;
}

void bm_texts_free(bm_texts *t)
{
    bm_vocab_free(t->vocab);
    free(t->features_text);
    free(t->normalised);
    *t = (bm_texts){0};
}

bm_status bm_texts_normalise(bm_texts *t, const char *text, const char **out)
{
    *out = text;
    if (strcmp(t->form, "none") == 0)
        return BM_OK;
    free(t->normalised);
    t->normalised = NULL;
    BM_TRY(bm_text_nfc(text, &t->normalised));
    *out = t->normalised;
    return BM_OK;
}
