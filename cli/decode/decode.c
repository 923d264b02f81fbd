/* decode.c - bmuf decode: recordings, line images and features to words. */
#include "cli/decode/format.h"
#include "cli/decode/out_files.h"
#include "cli/decode/search_options.h"
#include "cli/device.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/log.h"
#include "core/team.h"
#include "core/text/words.h"
#include "io/import/command_output.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* An input on its way through the team. */
typedef struct piece {
    bm_input input;
    bm_transcript *transcript;
    char *fault;
    bm_status status; /* of the fault */
} piece;

typedef struct decoding {
    const bm_format *format;
    bm_out_files files; /* or without --out stdout */
    bm_transcriber_settings settings;
    const char *hot_words[BM_MOST_GIVEN];
    bm_inputs *inputs;
    bm_transcriber **transcribers; /* [threads]: of each thread, once it needs
                                      one; the first owns the weights */
    bm_command_output *outputs;    /* [threads]: of the last command of each */
    long threads;
    pthread_mutex_t opening;
    piece *first; /* read ahead, until it is handed out */
    bool alone;   /* one argument is given */
    size_t decoded, failed;
    double seconds; /* of recordings that were decoded */
    size_t low;     /* of these, how many have bands that are empty */
    double lowest;  /* Hz: from where they are, at the least */
    size_t pages;   /* images that are no lines by their shape */
    char *page;     /* the first of them, and its size */
    double page_width, page_height;
} decoding;

/* ---- pieces -------------------------------------------------------------- */

static void free_piece(piece *p)
{
    if (p == NULL)
        return;
    bm_input_free(&p->input);
    bm_transcript_free(p->transcript);
    free(p->fault);
    free(p);
}

static bm_status read_piece(decoding *d, const atomic_bool *stop, piece **out)
{
    piece *p = calloc(1, sizeof *p);
    bool there = false;
    bm_status status = BM_OK;

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an input");
    status = bm_inputs_next(d->inputs, stop, &p->input, &there);
    if (status == BM_OK && there)
        *out = p;
    else
        free_piece(p);
    return status;
}

/* The next input that has no file yet. */
static bm_status next(void *self, const atomic_bool *stop, void **out)
{
    decoding *d = self;
    piece *p = d->first;
    bool skip = true;
    bm_status status = BM_OK;

    d->first = NULL;
    while (status == BM_OK && skip) {
        if (p == NULL)
            status = read_piece(d, stop, &p);
        if (status != BM_OK || p == NULL)
            break;
        status = bm_out_files_claim(&d->files, &p->input, &skip);
        if (status != BM_OK || skip) {
            free_piece(p);
            p = NULL;
        }
    }
    *out = p;
    return status;
}

static void drop(void *self, void *p)
{
    (void)self;
    free_piece(p);
}

/* ---- decoding ------------------------------------------------------------ */

/* The transcriber of a thread. */
static bm_status transcriber_of(decoding *d, size_t member,
                                bm_transcriber **out)
{
    bm_status status = BM_OK;

    if (d->transcribers[member] == NULL) {
        pthread_mutex_lock(&d->opening);
        status =
            bm_transcriber_fork(&d->transcribers[member], d->transcribers[0]);
        pthread_mutex_unlock(&d->opening);
    }
    *out = d->transcribers[member];
    return status;
}

/* *path <- the file of an input, which a command may have to write. */
static bm_status find_file(bm_command_output *output, const bm_input *input,
                           const char **path)
{
    bm_problem problem = {0};

    *path = input->path;
    if (!input->command)
        return BM_OK;
    BM_TRY(bm_command_output_read(output, input->path, &problem));
    if (bm_problem_is(&problem))
        return BM_FAIL(BM_ERR_FORMAT, "%s", problem.text);
    *path = output->path;
    return BM_OK;
}

static bm_status transcribe(decoding *d, size_t member, piece *p)
{
    const bm_input *input = &p->input;
    bm_transcriber *t = NULL;
    const char *path = NULL;

    BM_TRY(transcriber_of(d, member, &t));
    if (input->x != NULL)
        return bm_transcriber_frames(t, &input->frames, &p->transcript);
    BM_TRY(find_file(&d->outputs[member], input, &path));
    return bm_transcriber_file(t, path, &input->part, &p->transcript);
}

/* A message behind the "NAME: " that it may begin with. */
static const char *behind_name(const char *message, const char *name)
{
    size_t n = strlen(name);
    bool named = n > 0 && strncmp(message, name, n) == 0 &&
                 strncmp(message + n, ": ", 2) == 0;

    return named ? message + n + 2 : message;
}

/* Any failure is this input's alone: the others are decoded. */
static void work(void *self, size_t member, void *piece_)
{
    decoding *d = self;
    piece *p = piece_;
    const char *message = p->input.fault;

    p->status = p->input.status;
    if (message == NULL) {
        p->status = transcribe(d, member, p);
        if (p->status == BM_OK)
            return;
        message = bm_last_message();
    }
    if (p->input.command) /* its output has no name */
        message = behind_name(message, d->outputs[member].path);
    p->fault = strdup(behind_name(message, p->input.path));
}

/* ---- results ------------------------------------------------------------- */

/* The end of stdout is not this function's to report: see bm_job_end. */
static bm_status print(const decoding *d, const bm_decoded *result)
{
    d->format->write(stdout, result);
    return fflush(stdout) == 0 && !ferror(stdout) ? BM_OK : BM_STOPPED;
}

static bm_status write_result(const decoding *d, const piece *p)
{
    const bm_decoded result = {&p->input, p->transcript, p->fault,
                               d->settings.n_best > 1, NULL};

    if (d->files.folder == NULL)
        return print(d, &result);
    return p->transcript != NULL ? bm_out_files_write(&d->files, &result)
                                 : BM_OK;
}

/* "x.wav: why"; a reason that begins with the name has it already. */
static bm_status report_fault(const decoding *d, const piece *p)
{
    const char *why =
        p->fault != NULL ? p->fault : bm_status_text(BM_ERR_MEMORY);
    const char *name = p->input.shown;
    size_t n = strlen(name);
    bool named = strncmp(why, name, n) == 0 && strchr(" :/", why[n]) != NULL;

    if (d->alone && p->input.whole)
        return BM_FAIL(p->status, "%s%s%s", named ? "" : name,
                       named ? "" : ": ", why);
    bm_log(BM_WARNING, "%s%s%s", named ? "" : name, named ? "" : ": ", why);
    return BM_OK;
}

/* Lines are wider than high, and single letters have few pixels. */
static bool is_page(const bm_transcript *t, size_t model_height)
{
    double height = (double)t->height, most = 4 * (double)model_height;

    return height > most && t->length > most && height > t->length / 2;
}

static void count_page(decoding *d, const piece *p)
{
    if (!is_page(p->transcript,
                 bm_transcriber_describe(d->transcribers[0]).height) ||
        d->pages++ > 0)
        return;
    d->page = strdup(p->input.shown);
    d->page_width = p->transcript->length;
    d->page_height = (double)p->transcript->height;
}

static void count(decoding *d, const piece *p)
{
    const bm_transcript *t = p->transcript;

    d->decoded++;
    count_page(d, p);
    if (strcmp(p->input.unit, "s") == 0)
        d->seconds += t->length;
    if (t->empty_above <= 0)
        return;
    d->lowest =
        d->low++ == 0 ? t->empty_above : fmin(d->lowest, t->empty_above);
}

/* A single input that fails is the failure of the program. */
static bm_status take(void *self, void *piece_)
{
    decoding *d = self;
    piece *p = piece_;
    bool reported = d->alone && p->input.whole && d->format == &bm_format_txt;
    bm_status status = BM_OK;

    if (p->transcript != NULL || !reported)
        status = write_result(d, p);
    if (p->transcript != NULL) {
        count(d, p);
    } else {
        d->failed++;
        if (status == BM_OK)
            status = report_fault(d, p);
    }
    free_piece(p);
    return status;
}

static void report_low_rates(const decoding *d)
{
    if (d->low > 0)
        bm_log(BM_NOTE,
               "%s %s a lower sampling rate than the model's %ld Hz, the "
               "lowest %.0f Hz: bands above %.0f Hz are empty",
               bm_count_noun((long long)d->low, "recording").text,
               d->low == 1 ? "has" : "have",
               bm_transcriber_describe(d->transcribers[0]).rate, 2 * d->lowest,
               d->lowest);
}

static void report_pages(const decoding *d)
{
    char more[100] = "";

    if (d->pages > 1)
        snprintf(more, sizeof more, " and %s",
                 bm_count_noun((long long)d->pages - 1, "more image").text);
    if (d->pages > 0)
        bm_log(BM_WARNING,
               "%s (%.0f x %.0f pixels)%s %s the shape of a page, but each "
               "image is read as one line; find the lines with a program for "
               "layout, which writes PAGE XML or ALTO, then bmuf pack --images "
               "DIR --out SET --vocab MODEL --no-text, and decode SET",
               d->page != NULL ? d->page : "an image", d->page_width,
               d->page_height, more, d->pages > 1 ? "have" : "has");
}

static void report(const decoding *d, double seconds)
{
    const char *threads = bm_count_noun(d->threads, "thread").text;
    char of[200] = "";

    if (d->failed > 0)
        snprintf(of, sizeof of, " of %zu", d->decoded + d->failed);
    if (d->seconds > 0)
        bm_log(BM_NOTE,
               "%zu%s decoded: %.1f s of speech in %.2f s, real-time factor "
               "%.4f, %s",
               d->decoded, of, d->seconds, seconds, seconds / d->seconds,
               threads);
    else
        bm_log(BM_NOTE, "%zu%s decoded in %.2f s, %.1f a second, %s",
               d->decoded, of, seconds, (double)d->decoded / seconds, threads);
}

/* ---- the verb ------------------------------------------------------------ */

/* A file has a place for one input: is there a second one? */
static bm_status check_single(decoding *d)
{
    atomic_bool stop = false;
    piece *second = NULL;

    if (!d->format->single || d->files.folder != NULL)
        return BM_OK;
    BM_TRY(read_piece(d, &stop, &d->first));
    if (d->first != NULL)
        BM_TRY(read_piece(d, &stop, &second));
    if (second == NULL)
        return BM_OK;
    free_piece(second);
    return BM_FAIL(BM_ERR_ARG,
                   "decode: --format %s describes one input, but there are "
                   "several; add --out DIR for a file of each",
                   d->format->name);
}

/* After a failure: which files --out has already. */
static bm_status report_stop(const decoding *d, bm_status status)
{
    if (d->files.folder != NULL && d->decoded > 0)
        bm_log(BM_NOTE, "stopped after %s, whose files are in %s",
               bm_count_noun((long long)d->decoded, "input").text,
               d->files.folder);
    return status;
}

static bm_status decode_all(decoding *d)
{
    const bm_team_work w = {d, next, work, take, drop};
    double began = bm_clock();
    bm_status status = BM_OK;

    BM_TRY(check_single(d));
    status = bm_team_run(&w, (size_t)d->threads);
    if (status == BM_STOPPED) /* nobody reads stdout */
        return BM_OK;
    if (status != BM_OK)
        return report_stop(d, status);
    if (d->files.kept > 0)
        bm_log(BM_NOTE, "%s already decoded, in %s",
               bm_count_noun((long long)d->files.kept, "input").text,
               d->files.folder);
    if (d->decoded + d->failed == 0 && d->files.kept > 0)
        return BM_OK;
    if (d->decoded + d->failed == 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "stdin has no recording and no path: there is nothing "
                       "to decode");
    report_low_rates(d);
    report_pages(d);
    report(d, bm_clock() - began);
    if (d->failed > 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%zu of %s could not be decoded; the messages above "
            "say why",
            d->failed,
            bm_count_noun((long long)(d->decoded + d->failed), "input").text);
    return BM_OK;
}

static bm_status read_arguments(decoding *d, const bm_arguments *a)
{
    const char *format = NULL;

    BM_TRY(bm_argument_word(a, "format", BM_FORMATS(BM_FORMAT_WORD), "txt",
                            &format));
    d->format = bm_format_find(format);
    d->files = (bm_out_files){.folder = bm_argument(a, "out"),
                              .format = d->format,
                              .resume = bm_argument(a, "resume") != NULL,
                              .force = bm_argument(a, "force") != NULL};
    if ((d->files.resume || d->files.force) && d->files.folder == NULL)
        return BM_FAIL(BM_ERR_ARG, "decode: --%s needs --out DIR",
                       d->files.resume ? "resume" : "force");
    if (d->files.resume && d->files.force)
        return BM_FAIL(BM_ERR_ARG,
                       "decode: --resume and --force: give only one");
    BM_TRY(bm_argument_number(a, "threads", bm_cores(), 1, 1024, &d->threads));
    BM_TRY(bm_search_options_read(a, &d->settings, d->hot_words));
    BM_TRY(bm_argument_number(a, "channel", 0, 1, 1024, &d->settings.channel));
    if (d->settings.n_best > 1 && !d->format->alternatives)
        return BM_FAIL(BM_ERR_ARG,
                       "decode: --format %s has no place for alternatives; "
                       "with --nbest use txt or json",
                       format);
    return BM_OK;
}

/* Whether the options suit the model. */
static bm_status check_model(const decoding *d)
{
    const bm_transcriber *t = d->transcribers[0];
    bm_input_kind kind = bm_transcriber_describe(t).kind;
    const char *unit = bm_inputs_unit(t);

    if (d->settings.channel > 0 && kind != BM_RECORDINGS)
        return BM_FAIL(BM_ERR_ARG,
                       "decode: --channel applies only to recordings, but this "
                       "model reads %s",
                       bm_input_noun(kind));
    if (d->format->unit == NULL || strcmp(d->format->unit, unit) == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "decode: --format %s needs positions in %s, but this model "
                   "reads %s, with positions in %s",
                   d->format->name, d->format->unit, bm_input_noun(kind), unit);
}

static bm_status decode(const bm_arguments *a)
{
    decoding d = {0};
    bm_status status = BM_OK;

    BM_TRY(read_arguments(&d, a));
    d.alone = a->n_nouns == 2;
    d.transcribers = calloc((size_t)d.threads, sizeof(bm_transcriber *));
    d.outputs = calloc((size_t)d.threads, sizeof *d.outputs);
    if (d.transcribers == NULL || d.outputs == NULL) {
        free((void *)d.transcribers);
        free(d.outputs);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %ld threads", d.threads);
    }
    pthread_mutex_init(&d.opening, NULL);
    BM_TRY_DONE(
        bm_transcriber_open(&d.transcribers[0], a->nouns[0], &d.settings));
    BM_TRY_DONE(check_model(&d));
    if (d.files.folder != NULL)
        BM_TRY_DONE(bm_file_make_directory(d.files.folder));
    if (d.files.resume) /* of a decoding that was killed */
        BM_TRY_DONE(bm_file_remove_temporaries(d.files.folder, "", ""));
    BM_TRY_DONE(bm_inputs_open(&d.inputs, a->nouns + 1, (size_t)a->n_nouns - 1,
                               bm_argument(a, "allow-pipes") != NULL,
                               d.format->unit, d.transcribers[0]));
    status = decode_all(&d);
done:
    free_piece(d.first);
    bm_out_files_close(&d.files);
    bm_inputs_close(d.inputs);
    for (long i = d.threads; i-- > 0;) {
        bm_command_output_remove(&d.outputs[i]);
        bm_transcriber_close(d.transcribers[i]);
    }
    free(d.outputs);
    free(d.page);
    free((void *)d.transcribers);
    pthread_mutex_destroy(&d.opening);
    return status;
}

static const bm_flag flags[] = {
    {"format", "txt|trn|json|ctm|stm|srt|alto",
     "what to write; default: txt, a line of text for each input", 'f', false},
    {"out", "DIR", "write a file for each input; default: to stdout", 'o',
     false},
    {"resume", NULL, "decode only inputs that have no file in --out yet", 0,
     false},
    {"force", NULL, "replace files in --out", 0, false},
    {"threads", "N", "inputs at a time; default: all cores", 0, false},
    {"channel", "N", "of recordings, from 1; default: the mean of all", 0,
     false},
    {"allow-pipes", NULL,
     "run the commands that a list has in place of files ('sph2pipe .. |')", 0,
     false},
    BM_SEARCH_FLAGS,
    {0},
};

const bm_verb bm_verb_decode = {
    .name = "decode",
    .nouns = "MODEL|RUN INPUT...",
    .help = "turn recordings or images into words",
    .text =
        "  bmuf decode run/1 my.wav\n"
        "  bmuf decode run/1 recordings/ --format trn >hyp.trn\n"
        "  bmuf decode run/1 test.jsonl --format json --nbest 5\n"
        "  find . -name '*.flac' | bmuf decode run/1 - --format ctm\n"
        "  bmuf decode run/1 talk.wav --format srt >talk.srt\n\n"
        "INPUT is a recording, an image or a feature file, as the model was "
        "trained on; a\nfolder of them, or a data directory of Kaldi; a "
        "manifest, "
        "or a text file with a\npath on each line; a packed set; or -, which "
        "is "
        "paths or one recording on stdin.\nAn input that cannot be decoded is "
        "named, the others are decoded, and the exit\ncode is "
        "65.\n\nFormats:\n" BM_FORMATS(BM_FORMAT_LINE),
    .flags = flags,
    .least = 2,
    .most = BM_MOST_INPUTS,
    .run = decode,
};
