/* eval.c - bmuf eval: scores a model on a data set. */
#include "cli/json_output.h"
#include "cli/outputs.h"
#include "cli/score/draws.h"
#include "cli/score/dump.h"
#include "cli/score/error_rate.h"
#include "cli/score/interval_text.h"
#include "cli/score/scoring.h"
#include "cli/score/session.h"
#include "cli/score/transcripts/transcripts.h"
#include "cli/verbs.h"
#include "core/file/file.h"
#include "core/grow.h"
#include "core/text/words.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct evaluation {
    bm_scoring scored;
    bm_draws draws;
    bm_interval labels, words;
    bm_dump *dump;
    char *text; /* "sequence\ttranscript\n" of this rank, in any order */
    size_t length, room;
    bool transcripts;
} evaluation;

/* ---- transcripts -------------------------------------------------------- */

static bm_status append(evaluation *s, const char *text)
{
    size_t n = strlen(text);

    BM_TRY(bm_grow(&s->text, s->length + n, &s->room, 1));
    memcpy(s->text + s->length, text, n + 1);
    s->length += n;
    return BM_OK;
}

/* Called for every sequence: see bm_observer. */
static bm_status see(void *self, const bm_seen *seen)
{
    evaluation *s = self;
    const bm_vocab *vocab = s->scored.net.vocab;
    char *text = NULL, number[32];
    bm_status status = BM_OK;

    if (s->dump != NULL)
        BM_TRY(bm_dump_add(s->dump, seen->tag, seen->logits, seen->frames,
                           bm_vocab_size(vocab), seen->stride));
    if (!s->transcripts)
        return BM_OK;
    BM_TRY(bm_vocab_decode(vocab, seen->labels, seen->n, &text));
    snprintf(number, sizeof number, "%lld\t", (long long)seen->sequence);
    status = append(s, number);
    if (status == BM_OK)
        status = append(s, text);
    if (status == BM_OK)
        status = append(s, "\n");
    free(text);
    return status;
}

/* Splits "sequence\ttext\n" lines into lines[sequence]. */
static void sort_lines(char *text, char **lines, size_t n)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *words = NULL;
        unsigned long long k = strtoull(line, &words, 10);
        if (k < n && *words == '\t')
            lines[k] = words + 1;
    }
}

/* --hyp -: transcripts to stdout, for pipes. */
static bool is_stdout(const char *hyp)
{
    return hyp != NULL && strcmp(hyp, "-") == 0;
}

/* A device such as /dev/stdout cannot be replaced. */
static bm_status try_transcripts(const char *hyp)
{
    struct stat info;

    if (stat(hyp, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode))
        return BM_FAIL(
            BM_ERR_CREATE,
            "eval: --hyp %s is a device or a pipe; --hyp - writes to "
            "standard output",
            hyp);
    return bm_file_try(hyp);
}

static bm_status write_trn(evaluation *s, char *const *lines, const char *path)
{
    FILE *memory = NULL;
    char *text = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    memory = open_memstream(&text, &size);
    if (memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for transcripts");
    for (size_t i = 0; i < s->scored.data->n && status == BM_OK; i++) {
        const char *tag = NULL;
        status = bm_dataset_tag(s->scored.data, (int64_t)i, &tag);
        if (status != BM_OK)
            break;
        fprintf(memory, "%s (", lines[i] != NULL ? lines[i] : "");
        bm_trn_id_print(memory, tag);
        fprintf(memory, ")\n");
    }
    if (fclose(memory) != 0 && status == BM_OK)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for transcripts");
    if (status == BM_OK && is_stdout(path))
        fwrite(text, 1, size, stdout); /* checked at the end, as all results */
    else if (status == BM_OK)
        status = bm_file_write(path, text, size);
    free(text);
    return status;
}

/* Allocates texts[r] for lengths[r] characters of each rank. */
static bm_status make_texts(int size, const double *lengths, char **texts)
{
    for (int r = 0; r < size; r++) {
        texts[r] = calloc((size_t)lengths[r] + 1, 1);
        if (texts[r] == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for transcripts");
    }
    return BM_OK;
}

/* Collective. Rank 0 collects all lines and writes them in the order of the
 * data set. */
static bm_status gather_transcripts(evaluation *s, const char *path)
{
    int rank = bm_comm_rank(s->scored.comm),
        size = bm_comm_size(s->scored.comm);
    char **lines = calloc(s->scored.data->n + 1, sizeof *lines);
    char **texts = calloc((size_t)size, sizeof *texts);
    double *lengths = calloc((size_t)size, sizeof *lengths);
    bm_status status = BM_OK;

    if (lines == NULL || texts == NULL || lengths == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for transcripts");
    BM_TRY_DONE(bm_comm_agree(s->scored.comm, status));
    BM_ASSERT(lines != NULL && texts != NULL && lengths != NULL);
    lengths[rank] = (double)s->length;
    BM_TRY_DONE(bm_comm_sum(s->scored.comm, lengths, (size_t)size));
    BM_TRY_DONE(
        bm_comm_agree(s->scored.comm, make_texts(size, lengths, texts)));
    if (s->length > 0)
        memcpy(texts[rank], s->text, s->length);
    for (int r = 0; r < size; r++) {
        BM_TRY_DONE(bm_comm_broadcast_bytes(s->scored.comm, texts[r],
                                            (size_t)lengths[r], r));
        sort_lines(texts[r], lines, s->scored.data->n);
    }
    if (rank == 0)
        status = write_trn(s, lines, path);
    status = bm_comm_agree(s->scored.comm, status);
done:
    for (int r = 0; texts != NULL && r < size; r++)
        free(texts[r]);
    free((void *)texts);
    free((void *)lines);
    free(lengths);
    return status;
}

/* ---- results ------------------------------------------------------------ */

/* null: nothing to take the mean of. */
static json_t *rate(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void print_json(const evaluation *s)
{
    const bm_evaluation *e = &s->scored.result;
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:I, s:f}",
        "model", bm_json_text(s->scored.model), "loss",
        rate(bm_evaluation_loss(e)), "ler", rate(bm_evaluation_ler(e)),
        "sequences", (json_int_t)e->sequences, "references",
        (json_int_t)e->references, "wrong", (json_int_t)e->wrong, "labels",
        (json_int_t)e->labels, "substitutions", (json_int_t)e->substitutions,
        "deletions", (json_int_t)e->deletions, "insertions",
        (json_int_t)e->insertions, "words", (json_int_t)e->words, "word_errors",
        (json_int_t)bm_evaluation_word_errors(e), "skipped",
        (json_int_t)e->score.skipped, "zeroed", (json_int_t)e->score.zeroed,
        "frames", (json_int_t)e->frames, "seconds", e->seconds);

    json_object_set_new(o, "word_substitutions",
                        json_integer((json_int_t)e->word_substitutions));
    json_object_set_new(o, "word_deletions",
                        json_integer((json_int_t)e->word_deletions));
    json_object_set_new(o, "word_insertions",
                        json_integer((json_int_t)e->word_insertions));
    json_object_set_new(o, "wer", rate(bm_evaluation_wer(e)));
    json_object_set_new(o, "ler_95", bm_interval_json(&s->labels));
    json_object_set_new(o, "wer_95", bm_interval_json(&s->words));
    bm_draws_json(&s->draws, o);
    bm_json_print(o, JSON_REAL_PRECISION(9));
}

/* The counts of an evaluation are doubles. */
static bm_counted count(double n, const char *noun)
{
    return bm_count_noun((long long)n, noun);
}

static void print_sequences(const bm_evaluation *e, FILE *out)
{
    fprintf(out, "sequences       %.0f", e->sequences);
    if (e->references == 0)
        fprintf(out, ", none with a reference: no loss, no error rates\n");
    else if (e->references < e->sequences)
        fprintf(
            out,
            ", %.0f without a reference; %.0f of the other %.0f with errors "
            "(%.2f %%)\n",
            e->sequences - e->references, e->wrong, e->references,
            100 * e->wrong / e->references);
    else
        fprintf(out, ", %.0f of them with errors (%.2f %%)\n", e->wrong,
                100 * e->wrong / e->references);
}

static void print_rates(const evaluation *s, FILE *out)
{
    const bm_evaluation *e = &s->scored.result;
    char draws[200];

    if (isfinite(bm_evaluation_loss(e)))
        fprintf(out, "loss            %.6g nats per %s\n",
                bm_evaluation_loss(e), bm_model_loss(s->scored.net.model)->per);
    bm_error_rate_print("label errors",
                        &(bm_error_rate){e->substitutions, e->deletions,
                                         e->insertions, e->labels, s->labels},
                        out);
    bm_error_rate_print("word errors",
                        &(bm_error_rate){e->word_substitutions,
                                         e->word_deletions, e->word_insertions,
                                         e->words, s->words},
                        out);
    if (e->labels > 0 && bm_draws_text(&s->draws, draws)[0] != '\0')
        fprintf(out, "intervals       from %s\n", draws);
}

static void print_table(const evaluation *s, FILE *out)
{
    const bm_evaluation *e = &s->scored.result;

    fprintf(out, "model           %s\n", s->scored.model);
    print_sequences(e, out);
    print_rates(s, out);
    if (e->score.skipped > 0)
        fprintf(out, "skipped         %s infeasible or not finite\n",
                count(e->score.skipped, "sequence").text);
    if (e->score.zeroed > 0)
        fprintf(out, "with loss 0     %s infeasible or not finite\n",
                count(e->score.zeroed, "sequence").text);
    fprintf(out, "speed           %.0f frames/s\n", e->frames / e->seconds);
}

static bm_status score(evaluation *s, const bm_arguments *a,
                       const bm_plan_settings *plan)
{
    const char *hyp = bm_argument(a, "hyp");
    bm_observer observer = {s, see};

    s->transcripts = hyp != NULL;
    BM_TRY(bm_scoring_run(&s->scored, plan, &observer));
    if (hyp != NULL)
        BM_TRY(gather_transcripts(s, hyp));
    if (s->dump != NULL)
        BM_TRY(bm_dump_finish(s->dump));
    if (bm_comm_rank(s->scored.comm) != 0)
        return BM_OK;
    BM_TRY(bm_draws_interval(&s->draws, s->scored.labels, &s->labels));
    BM_TRY(bm_draws_interval(&s->draws, s->scored.words, &s->words));
    if (s->scored.result.references > 0)
        bm_draws_warn(&s->draws, (size_t)s->scored.result.references);
    if (bm_argument(a, "json") != NULL)
        print_json(s);
    else
        print_table(s, is_stdout(hyp) ? stderr : stdout);
    return BM_OK;
}

/* On rank 0, before any output is replaced. */
static bm_status check_places(const evaluation *s, const char *set,
                              const char *hyp)
{
    const char *const inputs[] = {s->scored.model, set, NULL};
    const char *dump[2] = {NULL, NULL};

    if (s->dump != NULL)
        bm_dump_files(s->dump, dump);
    return bm_outputs_check(
        (bm_output[]){{"--hyp", is_stdout(hyp) ? NULL : hyp},
                      {"--dump", dump[0]},
                      {"--dump", dump[1]}},
        3, inputs);
}

/* Each rank by itself. */
static bm_status open_alone(evaluation *s, const bm_arguments *a)
{
    const char *dump = bm_argument(a, "dump"), *hyp = bm_argument(a, "hyp");
    const char *values = NULL;

    BM_TRY(bm_argument_word(a, "values", BM_DUMP_VALUES, "logits", &values));
    if (hyp != NULL && !is_stdout(hyp) && bm_comm_rank(s->scored.comm) == 0)
        BM_TRY(try_transcripts(hyp));
    BM_TRY(bm_scoring_open(&s->scored, a->nouns[0], a->nouns[1],
                           bm_argument(a, "force") != NULL));
    BM_TRY(bm_draws_open(&s->draws, a, s->scored.data));
    if (dump != NULL)
        BM_TRY(bm_dump_open(&s->dump, dump, values));
    if (bm_comm_rank(s->scored.comm) == 0)
        BM_TRY(check_places(s, a->nouns[1], hyp));
    return BM_OK;
}

static bm_status check_outputs(const bm_arguments *a)
{
    const char *dump = bm_argument(a, "dump");

    if (is_stdout(bm_argument(a, "hyp")) && bm_argument(a, "json") != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "eval: --hyp - and --json both print to stdout; give "
                       "--hyp a file");
    if (dump == NULL && bm_argument(a, "values") != NULL)
        return BM_FAIL(BM_ERR_ARG, "eval: --values requires --dump");
    return dump != NULL ? bm_dump_check("eval", dump) : BM_OK;
}

static bm_status check_dump(const bm_arguments *a, long ranks)
{
    if (ranks > 1 && bm_argument(a, "dump") != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "eval: --dump needs a single rank; remove -n");
    return BM_OK;
}

static bm_status eval(const bm_arguments *a)
{
    bm_score_session session = {0};
    evaluation s = {0};
    long ranks = 1;
    bm_status status = BM_OK;

    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &ranks));
    BM_TRY(check_dump(a, ranks));
    BM_TRY(check_outputs(a));
    BM_TRY_DONE(bm_score_session_open(&session, a, 1));
    if (session.comm == NULL)
        goto done;
    BM_TRY_DONE(
        bm_comm_agree(session.comm, check_dump(a, bm_comm_size(session.comm))));
    s.scored = (bm_scoring){.comm = session.comm, .be = session.device.be};
    BM_TRY_DONE(bm_comm_agree(session.comm, open_alone(&s, a)));
    status = score(&s, a, &session.plan);
done:
    bm_dump_close(s.dump);
    bm_draws_free(&s.draws);
    bm_scoring_close(&s.scored);
    bm_score_session_close(&session);
    free(s.text);
    return status;
}

static const bm_flag flags[] = {
    BM_JSON_FLAG,
    {"hyp", "FILE",
     "write transcripts in NIST's trn form: words (id); -: to stdout, and the "
     "scores to stderr",
     0, false},
    {"dump", "FILE.npz",
     "write the logits of every sequence; ark:FILE, ark,t:FILE or "
     "ark,scp:FILE,LIST: for Kaldi; not with -n",
     0, false},
    {"values", "logits|posteriors|log-posteriors",
     "what --dump writes; default: logits", 0, false},
    BM_DRAW_FLAG,
    BM_RANKS_FLAG,
    BM_DEVICE_FLAGS,
    {0},
};

const bm_verb bm_verb_eval = {
    .name = "eval",
    .nouns = "MODEL|RUN DIR",
    .help = "score a model: loss, label and word error rates, transcripts",
    .text = "  bmuf eval run data/test\n"
            "  bmuf eval run/model.safetensors data/test\n"
            "  bmuf eval run/model.safetensors data/test --hyp test.trn -n 4\n"
            "  bmuf eval run data/test --hyp - | head\n\n"
            "Of a run it scores model-best.safetensors, the best model on "
            "data.dev, or\nwithout one model.safetensors. Without references "
            "there are no rates; --hyp and\n--dump work all the same.\n",
    .flags = flags,
    .least = 2,
    .most = 2,
    .run = eval,
};
