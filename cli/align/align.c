/* align.c - bmuf align: in which frames a CTC model hears the labels of a text. */
#include "cli/align/align_formats.h"
#include "cli/align/frame_targets.h"
#include "cli/align/manifest_set.h"
#include "cli/align/stop_request.h"
#include "cli/decode/folder_walk.h"
#include "cli/outputs.h"
#include "cli/score/scoring.h"
#include "cli/score/session.h"
#include "cli/verbs.h"
#include "core/file/file.h"
#include "core/file/search_folder.h"
#include "core/log.h"
#include "core/text/words.h"
#include "recognise/front_end.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the command line asks for. */
typedef struct wanted {
    const bm_align_format *format; /* NULL: no text */
    bool words;                    /* lines of words, else of labels */
    const char *out;               /* file or directory; NULL: stdout */
    const char *targets;           /* directory; NULL: none */
    const char *set;               /* what is aligned, as it was given */
    bool nearest;                  /* what blank frames become there */
} wanted;

/* How many sequences are aligned, and why others are not. */
typedef struct outcome {
    size_t aligned, infeasible, impossible, unlabelled;
    size_t far;  /* of the infeasible: too long for attention */
    size_t bare; /* of the aligned: no labels for --blank nearest */
} outcome;

typedef struct aligning {
    wanted want;
    bm_scoring scored;
    size_t *first; /* [n + 1]: the first label of each sequence */
    double *path;  /* [n]: ln p of each path; -INFINITY or NAN: there is none */
    double *spans; /* [labels, SPAN]: of all sequences, as bm_label_span */
    bm_label_span *buffer;  /* [longest]: of one sequence */
    bm_manifest_set packed; /* of a manifest */
    bm_dataset *stored;     /* the set once more, as it is stored */
    bm_file_replacement file;
    FILE *stream;
    bm_frame_targets *targets;
    double shift; /* seconds of a stored frame; 0: not recordings */
    outcome n;
} aligning;

enum { SPAN = 3, MOST_LOGGED = 10 };

/* ---- aligning, on every rank --------------------------------------------- */

static bm_status make_tables(aligning *a)
{
    const bm_dataset *data = a->scored.data;
    size_t longest = 0;

    a->first = calloc(data->n + 1, sizeof *a->first);
    a->path = calloc(data->n + 1, sizeof *a->path);
    a->spans = calloc((size_t)data->labels + 1, SPAN * sizeof *a->spans);
    if (a->first == NULL || a->path == NULL || a->spans == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu sequences",
                       data->n);
    for (size_t i = 0; i < data->n; i++) {
        size_t labels = (size_t)data->lengths[2 * i + 1];

        a->first[i + 1] = a->first[i] + labels;
        longest = labels > longest ? labels : longest;
    }
    a->buffer = calloc(longest + 1, sizeof *a->buffer);
    if (a->buffer == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to align %zu labels", longest);
    return BM_OK;
}

/* Called for every sequence: see bm_observer. */
static bm_status see(void *self, const bm_seen *seen)
{
    aligning *a = self;
    size_t k = (size_t)seen->sequence;
    double *row = a->spans + a->first[k] * SPAN;

    BM_TRY(bm_stop_request_check());
    if (!seen->has_reference)
        return BM_OK;
    BM_TRY(bm_ctc_align(seen->logits, seen->frames, seen->stride,
                        bm_vocab_size(a->scored.net.vocab), seen->reference,
                        seen->n_reference, a->buffer, &a->path[k]));
    for (size_t i = 0; i < seen->n_reference && isfinite(a->path[k]); i++) {
        const bm_label_span *span = &a->buffer[i];

        row[SPAN * i] = span->first;
        row[SPAN * i + 1] = span->last;
        row[SPAN * i + 2] = span->log_p;
    }
    return BM_OK;
}

/* The spans of other ranks' sequences are zero. */
static bm_status align_all(aligning *a, const bm_plan_settings *plan)
{
    bm_observer observer = {a, see};

    BM_TRY(bm_scoring_run(&a->scored, plan, &observer));
    BM_TRY(bm_comm_sum(a->scored.comm, a->path, a->scored.data->n));
    return bm_comm_sum(a->scored.comm, a->spans,
                       SPAN * (size_t)a->scored.data->labels);
}

/* ---- writing, on rank 0 -------------------------------------------------- */

static bm_status open_grid(aligning *a, const char *id)
{
    char path[4096];
    size_t folder = 0;
    int n = snprintf(path, sizeof path, "%s/", a->want.out);

    folder = (size_t)n;
    n += snprintf(path + folder, sizeof path - folder, "%s.TextGrid", id);
    if ((size_t)n >= sizeof path)
        return BM_FAIL(BM_ERR_CREATE, "%.60s..: path too long", a->want.out);
    for (char *c = path + folder; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    if (access(path, F_OK) == 0)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s exists; ids that differ in / and _ alone have one "
                       "file: change one of them",
                       path);
    BM_TRY(bm_file_replace_begin(&a->file, path));
    BM_TRY(bm_file_replace_stream(&a->file));
    a->stream = a->file.stream;
    return BM_OK;
}

static bm_status write_text(aligning *a, const bm_aligned *aligned)
{
    const bm_align_format *format = a->want.format;

    if (format == NULL)
        return BM_OK;
    if (!format->file_each)
        return format->write(aligned, a->want.words, a->stream);
    BM_TRY(open_grid(a, aligned->id));
    BM_TRY(format->write(aligned, a->want.words, a->stream));
    return bm_file_replace_commit(&a->file, false);
}

/* Counts a sequence that cannot be aligned. Reading and scoring have named the
 * first ones with too many labels. */
static void leave_out(aligning *a, const char *id, const int32_t *labels,
                      size_t n, size_t frames)
{
    const bm_align_format *format = a->want.format;
    const bm_model *model = a->scored.net.model;
    bool far = !bm_model_takes(model, frames);
    bool infeasible = far || !bm_model_fits(model, frames, labels, n);

    a->n.infeasible += infeasible;
    a->n.impossible += !infeasible;
    if (far && ++a->n.far <= MOST_LOGGED)
        bm_log(BM_WARNING,
               "%s: too long for the model's attention: not aligned; give "
               "excerpts (start, duration)",
               id);
    if (!infeasible && a->n.impossible <= MOST_LOGGED)
        bm_log(BM_WARNING,
               "%s: features or outputs of the network are not finite: not "
               "aligned",
               id);
    if (format != NULL && format->write_problem != NULL)
        format->write_problem(id, infeasible ? "infeasible" : "not finite",
                              a->stream);
}

/* A sequence without labels has no nearest one. */
static bm_status add_targets(aligning *a, const bm_aligned *aligned,
                             const float *x, const int32_t *labels, size_t n)
{
    if (a->targets == NULL)
        return BM_OK;
    if (a->want.nearest && n == 0) {
        a->n.bare++;
        return BM_OK;
    }
    return bm_frame_targets_add(a->targets, aligned->id, &aligned->map, x,
                                labels, a->buffer, n);
}

/* Writes sequence k of the set, x [frames, features] as stored. */
static bm_status write_sequence(aligning *a, size_t k, const float *x,
                                const int32_t *labels)
{
    const bm_dataset *data = a->stored;
    size_t n = a->first[k + 1] - a->first[k];
    size_t frames = (size_t)data->lengths[2 * k];
    const double *row = a->spans + a->first[k] * SPAN;
    bm_aligned aligned = {.map = {frames,
                                  bm_model_frames(a->scored.net.model, frames),
                                  bm_model_stride(a->scored.net.model)},
                          .shift = a->shift,
                          .log_p = a->path[k]};
    bm_status status = BM_OK;

    if (!bm_dataset_has_reference(data, (int64_t)k)) {
        a->n.unlabelled++;
        return BM_OK;
    }
    BM_TRY(bm_dataset_tag(a->stored, (int64_t)k, &aligned.id));
    if (!isfinite(a->path[k]) || !bm_model_takes(a->scored.net.model, frames)) {
        leave_out(a, aligned.id, labels, n, frames);
        return BM_OK;
    }
    a->n.aligned++;
    for (size_t i = 0; i < n; i++)
        a->buffer[i] =
            (bm_label_span){(int32_t)row[SPAN * i], (int32_t)row[SPAN * i + 1],
                            row[SPAN * i + 2]};
    BM_TRY_DONE(bm_aligned_fill(&aligned, bm_dataset_vocab(data), labels,
                                a->buffer, n));
    BM_TRY_DONE(write_text(a, &aligned));
    status = add_targets(a, &aligned, x, labels, n);
done:
    bm_aligned_free(&aligned);
    return status;
}

static bm_status write_all(aligning *a)
{
    bm_sequences s = {.packed = a->targets == NULL};
    size_t k = 0, D = a->stored->features;
    bm_status status = BM_OK;

    for (size_t unit = 0; unit < a->stored->n_units; unit++) {
        size_t frame = 0, label = 0;

        BM_TRY_DONE(bm_dataset_read(a->stored, unit, &s));
        for (size_t i = 0; i < s.n; i++, k++) {
            BM_TRY_DONE(bm_stop_request_check());
            BM_TRY_DONE(
                write_sequence(a, k, s.x + frame * D, s.targets + label));
            frame += (size_t)s.frames[i];
            label += (size_t)s.labels[i];
        }
    }
done:
    bm_sequences_free(&s);
    return status;
}

static void report(const aligning *a)
{
    const outcome *n = &a->n;
    size_t all = a->stored->n + a->packed.unread;

    bm_log(BM_NOTE,
           "aligned %zu of %s; left out %zu infeasible, %zu not finite, %zu "
           "without a reference, %zu that cannot be read",
           n->aligned, bm_count_noun((long long)all, "sequence").text,
           n->infeasible, n->impossible, n->unlabelled, a->packed.unread);
    if (n->bare > 0)
        bm_log(BM_NOTE, "left %s without labels out of %s",
               bm_count_noun((long long)n->bare, "sequence").text,
               a->want.targets);
}

static bm_status finish(aligning *a)
{
    BM_TRY(write_all(a));
    if (a->n.aligned == 0 && a->n.unlabelled == a->stored->n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: no sequence could be aligned: none has a text; "
                       "give each the text that is spoken or written in it",
                       a->want.set);
    if (a->n.aligned == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: no sequence could be aligned: %zu infeasible, %zu "
                       "not finite, %zu without a reference",
                       a->want.set, a->n.infeasible, a->n.impossible,
                       a->n.unlabelled);
    if (a->targets != NULL && a->n.bare == a->n.aligned)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: no sequence has labels, which --blank nearest "
                       "needs",
                       a->want.set);
    if (a->file.temporary[0] != '\0')
        BM_TRY(bm_file_replace_commit(&a->file, true));
    if (a->targets != NULL)
        BM_TRY(bm_frame_targets_finish(a->targets));
    report(a);
    return BM_OK;
}

/* ---- opening ------------------------------------------------------------- */

/* A directory of TextGrids must be new or empty. */
static bm_status make_empty_directory(const char *path)
{
    const struct dirent *entry = NULL;
    DIR *directory = NULL;
    bool empty = true;

    BM_TRY(bm_file_make_directory(path));
    directory = opendir(path);
    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    while (empty && (entry = readdir(directory)) != NULL)
        empty =
            strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(directory);
    if (!empty)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s is not empty; give a new directory for TextGrids",
                       path);
    return BM_OK;
}

/* Sets have whole microseconds; the settings of the features tell it exactly. */
static bm_status find_shift(aligning *a)
{
    const bm_shard *shard = a->stored->shards[0];
    bm_front_end *front = NULL;
    bm_status status = BM_OK;

    a->shift = bm_shard_frame_shift(shard);
    status = bm_front_end_open(&front, bm_shard_features_text(shard),
                               a->stored->features, 0);
    if (status == BM_ERR_FORMAT) /* it was made otherwise */
        return BM_OK;
    BM_TRY(status);
    if (bm_front_end_shift(front) > 0)
        a->shift = bm_front_end_shift(front);
    bm_front_end_close(front);
    return BM_OK;
}

/* Of rank 0, before anything is read. */
static bm_status check_outputs(const wanted *w, const char *model_or_run)
{
    bool folder = w->format != NULL && w->format->file_each;
    const bm_output out = {"--out", folder ? NULL : w->out};
    char model[4096];
    const char *const inputs[] = {model, w->set, NULL};

    BM_TRY(bm_recogniser_find(model_or_run, model, sizeof model));
    BM_TRY(bm_outputs_check(&out, 1, inputs));
    if (w->targets == NULL)
        return BM_OK;
    BM_TRY(bm_run_folder_refuse(w->targets));
    if (bm_folder_has_shards(w->targets))
        return BM_FAIL(BM_ERR_CREATE,
                       "%s already has shards; give --targets a new folder",
                       w->targets);
    return BM_OK;
}

static bm_status open_outputs(aligning *a)
{
    const wanted *w = &a->want;

    if (w->format != NULL && w->format->file_each) {
        BM_TRY(make_empty_directory(w->out));
    } else if (w->format != NULL && w->out != NULL) {
        BM_TRY(bm_file_replace_begin(&a->file, w->out));
        BM_TRY(bm_file_replace_stream(&a->file));
        a->stream = a->file.stream;
    } else {
        a->stream = stdout;
    }
    BM_TRY(bm_dataset_open(&a->stored, a->scored.data->directory));
    BM_TRY(find_shift(a));
    if (w->targets == NULL)
        return BM_OK;
    return bm_frame_targets_open(&a->targets, w->targets, a->stored,
                                 w->nearest);
}

static bool is_kaldi(const char *path)
{
    return bm_folder_is_kaldi(path, BM_RECORDINGS) ||
           bm_folder_is_kaldi(path, BM_FEATURE_FILES);
}

static bool is_manifest(const char *path)
{
    struct stat what;

    return is_kaldi(path) || (stat(path, &what) == 0 && S_ISREG(what.st_mode) &&
                              !bm_ends_with(path, BM_SHARD_SUFFIX));
}

static bm_status pack_manifest(aligning *a, const char *model, const char *path)
{
    char file[4096];
    bm_recogniser net = {0};
    bm_status status = BM_OK;

    if (bm_comm_size(a->scored.comm) > 1)
        return BM_FAIL(
            BM_ERR_ARG,
            "align: %s is %s; pack it to align it with -n, or leave "
            "out -n",
            path, is_kaldi(path) ? "a data directory of Kaldi" : "a manifest");
    bm_stop_request_catch();
    BM_TRY(bm_recogniser_find(model, file, sizeof file));
    BM_TRY(bm_recogniser_read(&net, a->scored.be, file, 1));
    status = bm_manifest_set_make(&a->packed, path, &net);
    bm_recogniser_close(&net);
    return status;
}

/* Each rank by itself. */
static bm_status open_alone(aligning *a, const bm_arguments *args)
{
    const char *set = args->nouns[1];

    if (bm_comm_rank(a->scored.comm) == 0)
        BM_TRY(check_outputs(&a->want, args->nouns[0]));
    if (is_manifest(set)) {
        BM_TRY(pack_manifest(a, args->nouns[0], set));
        set = a->packed.directory;
    }
    BM_TRY(bm_scoring_open(&a->scored, args->nouns[0], set,
                           bm_argument(args, "force") != NULL));
    if (bm_model_loss(a->scored.net.model)->per_frame)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s was trained with model.loss = %s; only a model "
                       "trained with ctc can align: give one",
                       a->scored.model,
                       bm_model_loss(a->scored.net.model)->name);
    bm_model_skip_infeasible(a->scored.net.model);
    a->want.words = a->want.words && bm_vocab_has_words(a->scored.net.vocab);
    BM_TRY(make_tables(a));
    return bm_comm_rank(a->scored.comm) == 0 ? open_outputs(a) : BM_OK;
}

static bm_status read_wanted(const bm_arguments *a, wanted *w)
{
    const char *format = NULL, *level = NULL, *blank = NULL;

    w->set = a->nouns[1];
    w->out = bm_argument(a, "out");
    w->targets = bm_argument(a, "targets");
    BM_TRY(bm_argument_word(a, "format", BM_ALIGN_FORMATS(BM_WORD),
                            w->targets == NULL || w->out != NULL ? "ctm" : NULL,
                            &format));
    BM_TRY(bm_argument_word(a, "level", "words labels", "words", &level));
    BM_TRY(bm_argument_word(a, "blank", "class nearest", "class", &blank));
    w->format = format != NULL ? bm_align_format_find(format) : NULL;
    w->words = strcmp(level, "words") == 0;
    w->nearest = strcmp(blank, "nearest") == 0;
    if (w->format != NULL && w->format->file_each && w->out == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "align: --format %s writes a file for each sequence; "
                       "give it a directory with --out DIR",
                       format);
    if (bm_argument(a, "level") != NULL &&
        (format == NULL || strcmp(format, "ctm") != 0))
        return BM_FAIL(BM_ERR_ARG,
                       "align: --level is of --format ctm; textgrid and json "
                       "have both words and labels");
    if (bm_argument(a, "blank") != NULL && w->targets == NULL)
        return BM_FAIL(BM_ERR_ARG, "align: --blank requires --targets DIR");
    return BM_OK;
}

static void aligning_close(aligning *a)
{
    bm_file_replace_abort(&a->file);
    bm_frame_targets_close(a->targets);
    bm_dataset_close(a->stored);
    bm_scoring_close(&a->scored);
    bm_manifest_set_remove(&a->packed);
    free(a->first);
    free(a->path);
    free(a->spans);
    free(a->buffer);
}

static bm_status align(const bm_arguments *args)
{
    bm_score_session session = {0};
    aligning a = {0};
    bm_status status = BM_OK;

    BM_TRY(read_wanted(args, &a.want));
    BM_TRY_DONE(bm_score_session_open(
        &session, args, bm_argument(args, "ranks") != NULL ? 1 : bm_cores()));
    if (session.comm == NULL)
        goto done;
    a.scored = (bm_scoring){.comm = session.comm, .be = session.device.be};
    BM_TRY_DONE(bm_comm_agree(session.comm, open_alone(&a, args)));
    BM_TRY_DONE(align_all(&a, &session.plan));
    if (bm_comm_rank(session.comm) == 0)
        status = finish(&a);
    status = bm_comm_agree(session.comm, status);
done:
    aligning_close(&a);
    bm_score_session_close(&session);
    bm_stop_request_obey();
    return status;
}

static const bm_flag flags[] = {
    {"format", "ctm|textgrid|json",
     "lines of NIST's ctm, TextGrids of Praat, or JSON lines; default: ctm", 0,
     false},
    {"out", "FILE|DIR",
     "file of the lines, default stdout; new directory of the TextGrids", 'o',
     false},
    {"level", "words|labels",
     "what has a line in ctm; default: words, if labels form words", 0, false},
    {"targets", "DIR",
     "write a set with a class for every frame, for loss = cross_entropy", 0,
     false},
    {"blank", "class|nearest",
     "what a blank frame is there: class 0, or of the nearest label; default: "
     "class",
     0, false},
    BM_RANKS_FLAG,
    {"threads", "N",
     "CPU threads per rank; default: all cores, with -n 1 for each rank", 0,
     false},
    BM_DEVICE_FLAGS_LESS_THREADS,
    {0},
};

const bm_verb bm_verb_align = {
    .name = "align",
    .nouns = "MODEL|RUN DIR|MANIFEST",
    .help = "times of words and labels; frame targets for cross entropy",
    .text = "  bmuf align run data/test > test.ctm\n"
            "  bmuf align run test.jsonl --format textgrid --out grids\n"
            "  bmuf align run data/train --targets data/train-frames\n\n"
            "Finds the most probable path of a CTC model through the labels of "
            "each text\n(docs/results/alignment.md), of a packed set or of the "
            "files of a manifest.\nIt uses all cores; with -n, one for each "
            "rank.\n",
    .flags = flags,
    .least = 2,
    .most = 2,
    .run = align,
};
