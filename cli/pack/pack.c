/* pack.c - bmuf pack: packs recordings, line images or features into shards. */
#include "cli/device.h"
#include "cli/json_output.h"
#include "cli/launch/processes.h"
#include "cli/pack/packing.h"
#include "cli/placement/own_place.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/file/path.h"
#include "core/file/search_folder.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bm_status get_percent(const bm_arguments *a, const char *option,
                             double usual, double *out)
{
    const char *text = bm_argument(a, option);
    char *end = NULL;

    *out = usual;
    if (text == NULL)
        return BM_OK;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out >= 0 && *out <= 100))
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --%s %s is not a percentage from 0 to 100",
                       option, text);
    return BM_OK;
}

/* Features if the data directory has some, else recordings. */
static const bm_importer_ops *importer_of_kaldi(const char *directory)
{
    static const char *const names[] = {"feats.scp", "feats.scp.gz"};
    char path[PATH_MAX];

    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (bm_path_join(path, directory, names[k]) == BM_OK &&
            access(path, F_OK) == 0)
            return &bm_importer_features;
    return &bm_importer_audio;
}

/* The importer and manifest of the command line. */
static bm_status find_source(const bm_arguments *a,
                             const bm_importer_ops **importer,
                             const char **path)
{
    const bm_importer_ops *const *all = bm_importer_list();
    const char *kaldi = bm_argument(a, "kaldi");

    *importer = NULL;
    for (size_t i = 0; all[i] != NULL; i++) {
        const char *given = bm_argument(a, all[i]->name);

        if (given == NULL)
            continue;
        if (*importer != NULL)
            return BM_FAIL(BM_ERR_ARG, "pack: --%s and --%s: give only one",
                           (*importer)->name, all[i]->name);
        *importer = all[i];
        *path = given;
    }
    if (kaldi != NULL && *importer != NULL)
        return BM_FAIL(BM_ERR_ARG, "pack: --kaldi and --%s: give only one",
                       (*importer)->name);
#define X(name, file) " --" #name
    if (kaldi == NULL && *importer == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack needs a FILE after one of%s, or --kaldi DIR",
                       BM_IMPORTERS(X));
#undef X
    if (kaldi != NULL) {
        *importer = importer_of_kaldi(kaldi);
        *path = kaldi;
    }
    return BM_OK;
}

/* --labels FILE is features.labels=FILE. */
static bm_status set_labels(const bm_arguments *a,
                            const bm_importer_ops *importer, bm_config *config)
{
    const char *path = bm_argument(a, "labels");
    char setting[4200];

    if (path == NULL)
        return BM_OK;
    if (importer != &bm_importer_idx)
        return BM_FAIL(BM_ERR_ARG, "pack: --labels requires --idx");
    snprintf(setting, sizeof setting, "features.labels=%s", path);
    return bm_config_set(config, setting);
}

/* Classes of frames are for what has a manifest. */
static bm_status check_targets(const bm_arguments *a,
                               const bm_importer_ops *importer)
{
    if (bm_argument(a, "targets") == NULL ||
        (importer != &bm_importer_idx && importer != &bm_importer_returnn))
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "pack: --targets cannot be combined with --%s, which has "
                   "classes of its own",
                   importer->name);
}

static bm_status check_resume(const bm_arguments *a,
                              const bm_importer_ops *importer)
{
    if (bm_argument(a, "resume") == NULL)
        return BM_OK;
    if (bm_argument(a, "force") != NULL)
        return BM_FAIL(BM_ERR_ARG, "pack: --resume and --force: give only one");
    if (importer->skip == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --resume cannot be combined with --%s; pack "
                       "again with --force",
                       importer->name);
    return BM_OK;
}

/* Further files after the options. */
static bm_status take_more(const bm_arguments *a,
                           const bm_importer_ops *importer,
                           bm_import_source *source)
{
    source->more = a->nouns;
    source->n_more = (size_t)a->n_nouns;
    if (a->n_nouns == 0 || importer == &bm_importer_returnn)
        return BM_OK;
    if (source->targets != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: unexpected file '%s'; --targets takes one. Join "
                       "several: cat ali.*.gz > ali.gz, or give --targets "
                       "\"ark:gunzip -c ali.*.gz |\" with --allow-pipes",
                       a->nouns[0]);
    return BM_FAIL(
        BM_ERR_ARG,
        "pack: unexpected file '%s'; only --returnn takes several%s",
        a->nouns[0],
        importer == &bm_importer_images
            ? ". Give their folder, or a list of their paths, one a line"
            : "");
}

/* Without texts no vocabulary can be learned, and classes are no texts. */
static bm_status check_no_text(const bm_arguments *a,
                               const bm_importer_ops *importer)
{
    if (bm_argument(a, "no-text") == NULL)
        return BM_OK;
    if (bm_argument(a, "targets") != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --no-text and --targets: give only one");
    if (importer == &bm_importer_idx || importer == &bm_importer_returnn)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --no-text cannot be combined with --%s, which "
                       "has labels in place of texts",
                       importer->name);
    if (bm_argument(a, "vocab") == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --no-text requires --vocab MODEL, the model that "
                       "is to decode the set");
    return BM_OK;
}

/* A folder of images is for lists of images. */
static bm_status check_image_dir(const bm_arguments *a,
                                 const bm_importer_ops *importer)
{
    if (bm_argument(a, "image-dir") == NULL || importer == &bm_importer_images)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG, "pack: --image-dir requires --images");
}

/* Ranks read a manifest each. */
static bool is_stream(const char *path)
{
    struct stat info;

    return strcmp(path, "-") == 0 ||
           (stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
            !S_ISDIR(info.st_mode));
}

/* Whether ranks can share the work. Fails if they cannot, but are asked for. */
static bm_status check_ranks(const bm_arguments *a,
                             const bm_importer_ops *importer, const char *path,
                             bool *shared)
{
    const char *hosts = bm_argument(a, "hosts");
    long ranks = 1;

    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &ranks));
    *shared = importer->each != NULL && !is_stream(path);
    if (*shared ||
        (ranks == 1 && hosts == NULL && bm_argument(a, "hostfile") == NULL))
        return BM_OK;
    if (importer->each == NULL)
        return BM_FAIL(
            BM_ERR_ARG,
            "pack: several ranks cannot be combined with --%s, whose files one "
            "process reads; pack without -n and hosts",
            importer->name);
    return BM_FAIL(
        BM_ERR_ARG,
        "pack: each rank reads the manifest, and %s can be read only "
        "once; write it to a file",
        path);
}

/* *comm <- the ranks that share the work, NULL: this process alone; *supervisor:
 * others have done all. */
static bm_status start_ranks(const bm_arguments *a, bm_comm **comm,
                             bool *supervisor)
{
    /* A file may take any time: nothing hangs. */
    bm_job_plan plan = bm_job_defaults;
    long ranks = 1;

    plan.launch.limits.hang_s = 0;
    plan.launch.again = "; the same command with --resume goes on after the "
                        "shards that are complete";
    BM_TRY(bm_job_ranks(a, ".", &ranks));
    if (bm_job_is_alone())
        return BM_OK;
    BM_TRY(bm_job_start(a, &plan, comm));
    *supervisor = *comm == NULL;
    return BM_OK;
}

/* Threads of this rank: all cores, or its share of them. */
static bm_status get_threads(const bm_arguments *a, const bm_comm *comm,
                             size_t *out)
{
    long threads = bm_cores();
    bm_placement place;

    if (comm != NULL && bm_argument(a, "threads") == NULL) {
        bm_own_place_take(&place, comm, false, false);
        threads = place.cores;
    }
    BM_TRY(bm_argument_number(a, "threads", threads, 1, 1024, &threads));
    *out = (size_t)threads;
    return BM_OK;
}

/* A name of files in --out, which what reads a set does not pass over. */
static bm_status check_name(const char *name)
{
    if (name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "pack: --name '%.60s': shards are NAME-00000.bmuf.h5, .. in "
                   "--out; give a NAME that does not begin with '.' and has no "
                   "'/'",
                   name);
}

static bm_status read_plan(const bm_arguments *a, const bm_config *config,
                           bm_packing_plan *plan)
{
    const char *name = bm_argument(a, "name");

    plan->directory = bm_argument(a, "out");
    plan->name = name != NULL ? name : "data";
    plan->force = bm_argument(a, "force") != NULL;
    plan->resume = bm_argument(a, "resume") != NULL;
    plan->json = bm_argument(a, "json") != NULL;
    plan->no_text = bm_argument(a, "no-text") != NULL;
    BM_TRY(check_name(plan->name));
    BM_TRY(bm_config_fill(config, "shard", bm_shard_options, &plan->set));
    if (bm_config_text(config, "shard", "store") == NULL)
        plan->set.store = NULL;
    BM_TRY(get_percent(a, "max-left-out", 1, &plan->most_left_out));
    return get_percent(a, "max-unknown", 20, &plan->most_unknown);
}

/* All that one process can check. Texts are borrowed from `a`. */
static bm_status read_arguments(const bm_arguments *a,
                                const bm_importer_ops **importer,
                                bm_import_source *source, bool *shared)
{
    size_t threads = 0;

    BM_TRY(find_source(a, importer, &source->path));
    if (bm_argument(a, "out") == NULL)
        return BM_FAIL(BM_ERR_ARG, "pack needs --out DIR");
    BM_TRY(bm_run_folder_refuse(bm_argument(a, "out")));
    source->targets = bm_argument(a, "targets");
    source->image_dir = bm_argument(a, "image-dir");
    source->pipes = bm_argument(a, "allow-pipes") != NULL;
    BM_TRY(check_targets(a, *importer));
    BM_TRY(check_no_text(a, *importer));
    BM_TRY(check_image_dir(a, *importer));
    BM_TRY(take_more(a, *importer, source));
    BM_TRY(check_resume(a, *importer));
    BM_TRY(get_threads(a, NULL, &threads));
    return check_ranks(a, *importer, source->path, shared);
}

static bool has_option(const bm_option *options, const char *key)
{
    for (; options != NULL && options->key != NULL; options++)
        if (strcmp(options->key, key) == 0)
            return true;
    return false;
}

/* A setting of recordings, or of features, that --kaldi DIR does not read. */
static bm_status refuse_of_kaldi(const char *directory, const char *key,
                                 const bm_importer_ops *importer,
                                 const bm_importer_ops *other)
{
    bool features = importer == &bm_importer_features;

    if (features && other == &bm_importer_audio)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s.%s is a setting of recordings, but of %s its "
                       "feats.scp is read, whose features are made; remove the "
                       "setting, or give --audio %s, which reads wav.scp",
                       importer->section, key, directory, directory);
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s.%s is a setting of --%s, not of --kaldi %s, of which %s "
                   "is read; remove it",
                   importer->section, key, other->name, directory,
                   features ? "feats.scp" : "wav.scp");
}

/* Settings of other importers. kaldi: the data directory, or NULL. */
static bm_status check_others(const bm_config *config,
                              const bm_importer_ops *importer,
                              const char *kaldi)
{
    const bm_importer_ops *const *all = bm_importer_list();

    for (size_t i = 0; all[i] != NULL; i++)
        for (const bm_option *o = all[i]->options; o->key != NULL; o++)
            if (bm_config_text(config, importer->section, o->key) != NULL &&
                !has_option(importer->options, o->key))
                return kaldi != NULL
                           ? refuse_of_kaldi(kaldi, o->key, importer, all[i])
                           : BM_FAIL(BM_ERR_CONFIG,
                                     "%s.%s is a setting of --%s, not of --%s; "
                                     "remove it",
                                     importer->section, o->key, all[i]->name,
                                     importer->name);
    return BM_OK;
}

/* Settings of training. */
static bm_status check_training(const bm_config *config,
                                const bm_section *sections)
{
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++) {
        const bm_section *own = sections;

        while (own->name != NULL && strcmp(own->name, s->name) != 0)
            own++;
        for (const bm_option *o = s->options;
             own->name == NULL && o != NULL && o->key != NULL; o++)
            if (bm_config_text(config, s->name, o->key) != NULL)
                return BM_FAIL(BM_ERR_CONFIG,
                               "%s.%s is a setting of bmuf train, not of bmuf "
                               "pack; remove it",
                               s->name, o->key);
    }
    return BM_OK;
}

static bm_status read_config(const bm_arguments *a,
                             const bm_importer_ops *importer, bm_config *config)
{
    bm_section sections[4];

    bm_pack_sections(importer, sections);
    BM_TRY(bm_arguments_set(a, config));
    BM_TRY(set_labels(a, importer, config));
    BM_TRY(check_others(config, importer, bm_argument(a, "kaldi")));
    BM_TRY(check_training(config, sections));
    return bm_config_check(config, sections);
}

/* Vocabulary and, where the user set none, settings of --vocab. */
static bm_status open_texts(const bm_arguments *a, const bm_importer_ops *ops,
                            const bm_comm *comm, bm_config *config,
                            bm_texts *texts)
{
    char taken[1024];

    BM_TRY(bm_texts_open(texts, a, ops->words));
    if (texts->features_text == NULL)
        return BM_OK;
    BM_TRY(bm_features_follow(texts->features_text, ops->kind, ops->options,
                              config, taken, sizeof taken));
    if (taken[0] != '\0' && (comm == NULL || bm_comm_rank(comm) == 0))
        bm_log(BM_NOTE, "as %s: %s", bm_argument(a, "vocab"), taken);
    return BM_OK;
}

/* Collective, over the ranks of source->comm. */
static bm_status pack_all(const bm_arguments *a, bm_config *config,
                          const bm_packing_plan *plan, bm_import_source *source,
                          const bm_importer_ops *ops)
{
    bm_texts texts = {0};
    bm_importer *importer = NULL;
    bm_status status = BM_OK;

    status = get_threads(a, source->comm, &source->threads);
    if (status == BM_OK)
        status = open_texts(a, ops, source->comm, config, &texts);
    if (source->comm != NULL)
        status = bm_comm_agree(source->comm, status);
    source->like = texts.features_text;
    source->classes =
        texts.vocab != NULL && !texts.learned ? bm_vocab_size(texts.vocab) : 0;
    source->most_missing = plan->most_left_out;
    source->samples = plan->set.samples;
    if (status == BM_OK)
        status = bm_importer_open(&importer, ops->name, config, source);
    if (status == BM_OK)
        status = bm_packing_run(plan, importer, &texts);
    bm_texts_free(&texts);
    bm_importer_close(importer);
    return status;
}

static bm_status pack(const bm_arguments *a)
{
    bm_import_source source = {0};
    bm_packing_plan plan = {0};
    const bm_importer_ops *importer = NULL;
    bm_config *config = NULL;
    bool shared = false, supervisor = false;
    bm_status status = BM_OK;

    BM_TRY(read_arguments(a, &importer, &source, &shared));
    BM_ASSERT(importer != NULL);
    BM_TRY_DONE(bm_config_new(&config));
    BM_TRY_DONE(read_config(a, importer, config));
    BM_TRY_DONE(read_plan(a, config, &plan));
    if (shared)
        BM_TRY_DONE(start_ranks(a, &source.comm, &supervisor));
    if (!supervisor)
        status = pack_all(a, config, &plan, &source, importer);
done:
    bm_config_free(config);
    return status;
}

static const bm_flag flags[] = {
#define X(name, file) {#name, "FILE", file, 0, false},
    BM_IMPORTERS(X)
#undef X
        {"kaldi", "DIR",
         "Kaldi data directory; reads feats.scp if present, else wav.scp", 0,
         false},
    {"out", "DIR", "directory for the shards", 'o', false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {"labels", "FILE",
     "classes of --idx; default: its name with labels-idx1 for images-idx3", 0,
     false},
    {"targets", "FILE",
     "archive or list of Kaldi, or with --allow-pipes a command, with a class "
     "for each frame, for loss = cross_entropy",
     0, false},
    {"allow-pipes", NULL,
     "run the commands that a list or --targets has in place of files "
     "('sph2pipe .. |')",
     0, false},
    {"image-dir", "DIR",
     "folder of the images of a list of PyLaia, after --images LIST", 0, false},
    {"units", "characters|words",
     "what the labels of the texts are; default: characters, of --idx words", 0,
     false},
    {"vocab", "FILE|DIR|MODEL|RUN",
     "use the vocabulary of the training shards, a model or a run, and its "
     "settings of [features] where none are set",
     0, false},
    {"name", "NAME", "shards are NAME-00000.bmuf.h5, ..; default: data", 0,
     false},
    {"text", "nfc|none",
     "normalise texts to Unicode's form C, or not; default: nfc", 0, false},
    {"no-text", NULL,
     "pack all without their texts, to decode them by the model of --vocab", 0,
     false},
    {"max-left-out", "PERCENT",
     "fail if more of the manifest cannot be used; default: 1", 0, false},
    {"max-unknown", "PERCENT",
     "fail if more symbols of the texts are not in --vocab; default: 20", 0,
     false},
    {"threads", "N",
     "files at a time, of each rank; default: all cores, or its share of them",
     0, false},
    BM_ALLOCATION_FLAGS,
    {"force", NULL, "replace the shards in --out", 0, false},
    {"resume", NULL,
     "continue a packing that was stopped, with the same options", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_pack = {
    .name = "pack",
    .nouns = "[FILE ..]",
    .help = "pack recordings, images or features into shards",
    .text =
        "  bmuf pack --audio train.jsonl --out data/train\n"
        "  bmuf pack --audio test.jsonl --out data/test --vocab data/train\n"
        "  bmuf pack --kaldi data/train --out shards/train\n"
        "  bmuf pack --returnn a.hdf b.hdf --out data/train\n"
        "  bmuf pack --images pages/ --out shards/train\n"
        "  bmuf pack --idx train-images-idx3-ubyte.gz --out data/train\n"
        "  bmuf pack --audio train.jsonl --out data/train --hosts a:4,b:4\n\n"
        "A manifest has one JSON object per line; paths are relative to its "
        "directory:\n"
        "  {\"id\": \"u1\", \"audio\": \"u1.wav\", \"text\": \"one two\", "
        "\"speaker\": \"s1\"}\n"
        "with \"image\" or \"feats\" for \"audio\". \"start\" and "
        "\"duration\" in seconds take\nan excerpt of a recording. Tables with "
        "a "
        "header, manifests of NeMo and cuts of\nLhotse are read, too, all of "
        "them also as .gz; - is standard input. bmuf\noptions --pack lists the "
        "settings.\n"
        "--images also takes a folder with NAME.png and NAME.gt.txt, PAGE XML "
        "or ALTO, a\nfolder or list of such files, and lists of PyLaia with "
        "--image-dir.\n\n"
        "With --vocab DIR, labels are words or characters as in those shards. "
        "With\n--vocab FILE, a text file such as vocab.txt, add --units words "
        "if its symbols\nare words; those of Kaldi's words.txt and phones.txt "
        "are.\n",
    .flags = flags,
    .least = 0,
    .most = BM_MOST_INPUTS,
    .run = pack,
};
