#include "io/import/frame_classes.h"

#include "core/grow.h"
#include "core/text/words.h"
#include "io/import/command_output.h"
#include "io/import/files/kaldi_file.h"
#include "io/import/manifest/lines.h"
#include "io/import/manifest/manifest.h"
#include "io/place.h"
#include "io/shard/shard.h"

#include <stdlib.h>
#include <string.h>

/* The classes of a sequence: all[begin .. begin + n - 1]. */
typedef struct sequence {
    char *id;
    size_t begin, n;
} sequence;

struct bm_frame_classes {
    sequence *of; /* sorted by id once all are read */
    size_t n, room;
    int32_t *all;
    size_t used, room_all;
    int32_t highest;
    bool has_zero;
    /* borrowed while it is read: its name in messages, and what is opened, which
     * is the output of the command `path` if it is one */
    const char *path, *file;
};

static bm_status add(bm_frame_classes *c, const char *id, const bm_integers *x)
{
    BM_TRY(bm_grow(&c->of, c->n, &c->room, sizeof *c->of));
    BM_TRY(bm_grow(&c->all, c->used + x->n, &c->room_all, sizeof *c->all));
    for (size_t i = 0; i < x->n; i++) {
        if (x->x[i] < 0)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s: class %d of frame %zu is below 0; is it an "
                           "alignment?",
                           c->path, id, (int)x->x[i], i);
        if (x->x[i] > c->highest)
            c->highest = x->x[i];
        c->has_zero |= x->x[i] == 0;
        c->all[c->used + i] = x->x[i];
    }
    c->of[c->n] = (sequence){strdup(id), c->used, x->n};
    if (c->of[c->n].id == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a name");
    c->n++;
    c->used += x->n;
    return BM_OK;
}

static bm_status check(const bm_problem *problem)
{
    return bm_problem_is(problem) ? BM_FAIL(BM_ERR_FORMAT, "%s", problem->text)
                                  : BM_OK;
}

static bm_status read_archive(bm_frame_classes *c)
{
    char id[BM_LONGEST_TAG + 1];
    bm_kaldi_file f = {0};
    bm_integers x = {0};
    bm_problem problem = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_kaldi_open(&f, c->file));
    f.path = c->path;
    for (;;) {
        BM_TRY_DONE(bm_kaldi_key(&f, id, sizeof id, &problem));
        BM_TRY_DONE(check(&problem));
        if (id[0] == '\0')
            break;
        BM_TRY_DONE(bm_kaldi_integers(&f, &x, &problem));
        BM_TRY_DONE(check(&problem));
        BM_TRY_DONE(add(c, id, &x));
    }
done:
    bm_kaldi_close(&f);
    free(x.x);
    return status;
}

/* One line of a list: "id path:offset". f: the archive of the line before. */
static bm_status read_line(bm_frame_classes *c, size_t number, char *line,
                           bm_place *last, bm_kaldi_file *f, bm_integers *x)
{
    char *value = line + strcspn(line, " \t");
    bm_place place;
    bm_problem problem = {0};

    if (*value != '\0')
        *value++ = '\0';
    value += strspn(value, " \t");
    if (*value == '\0' || bm_ends_with(value, "|") ||
        !bm_place_parse(&place, value) || place.cut)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s:%zu: not \"ID FILE:OFFSET\"; commands and ranges are "
            "not read here",
            c->path, number);
    if (f->file == NULL || strcmp(last->file, place.file) != 0) {
        bm_kaldi_close(f);
        *last = place;
        BM_TRY(bm_kaldi_open(f, last->file));
    }
    BM_TRY(bm_kaldi_seek(f, place.offset, &problem));
    if (!bm_problem_is(&problem))
        BM_TRY(bm_kaldi_integers(f, x, &problem));
    BM_TRY(check(&problem));
    return add(c, line, x);
}

static bm_status read_list(bm_frame_classes *c)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bm_kaldi_file f = {0};
    bm_integers x = {0};
    bm_place last = {.file = ""};
    bm_status status = BM_OK;

    BM_TRY(bm_lines_open(&lines, c->file));
    for (;;) {
        BM_TRY_DONE(bm_lines_next(lines, &line, &length));
        if (line == NULL)
            break;
        if (length > 0)
            BM_TRY_DONE(
                read_line(c, bm_lines_number(lines), line, &last, &f, &x));
    }
done:
    bm_lines_close(lines);
    bm_kaldi_close(&f);
    free(x.x);
    return status;
}

static int by_id(const void *left, const void *right)
{
    const sequence *a = left, *b = right;

    return strcmp(a->id, b->id);
}

/* c->file <- c->path, or the output of the command that it is. */
static bm_status find_file(bm_frame_classes *c, bool pipes,
                           bm_command_output *output)
{
    bm_problem problem = {0};

    c->file = c->path;
    if (!bm_manifest_is_pipe(c->path))
        return BM_OK;
    if (!pipes)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --targets: a command, which is not run: %.300s; "
                       "let pack run it with --allow-pipes, or write its "
                       "output to a file and give that",
                       c->path);
    BM_TRY(bm_command_output_read(output, c->path, &problem));
    BM_TRY(check(&problem));
    c->file = output->path;
    return BM_OK;
}

static bm_status read_all(bm_frame_classes *c, const char *path, bool pipes)
{
    bool list = strncmp(path, "scp:", 4) == 0 || bm_ends_with(path, ".scp");
    bool marked =
        strncmp(path, "scp:", 4) == 0 || strncmp(path, "ark:", 4) == 0;
    bm_command_output output = {0};
    bm_status status = BM_OK;

    c->path = marked ? path + 4 : path;
    status = find_file(c, pipes, &output);
    if (status == BM_OK)
        status = list ? read_list(c) : read_archive(c);
    bm_command_output_remove(&output);
    BM_TRY(status);
    if (c->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is empty; it should have a class for "
                       "each frame of each sequence",
                       c->path);
    qsort(c->of, c->n, sizeof *c->of, by_id);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(c->of[i].id, c->of[i - 1].id) == 0)
            return BM_FAIL(BM_ERR_FORMAT, "%s: %s occurs twice", c->path,
                           c->of[i].id);
    return BM_OK;
}

bm_status bm_frame_classes_read(bm_frame_classes **out, const char *path,
                                bool pipes)
{
    bm_frame_classes *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for classes of frames");
    status = read_all(c, path, pipes);
    if (status == BM_OK)
        *out = c;
    else
        bm_frame_classes_free(c);
    return status;
}

void bm_frame_classes_free(bm_frame_classes *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->of[i].id);
    free(c->of);
    free(c->all);
    free(c);
}

int32_t bm_frame_classes_highest(const bm_frame_classes *c)
{
    return c->highest;
}

bool bm_frame_classes_have_zero(const bm_frame_classes *c)
{
    return c->has_zero;
}

size_t bm_frame_classes_frames(const bm_frame_classes *c)
{
    return c->used;
}

static int has_id(const void *id, const void *right)
{
    return strcmp(id, ((const sequence *)right)->id);
}

const int32_t *bm_frame_classes_find(const bm_frame_classes *c, const char *id,
                                     size_t *n)
{
    const sequence *found = bsearch(id, c->of, c->n, sizeof *c->of, has_id);

    *n = found != NULL ? found->n : 0;
    return found != NULL ? c->all + found->begin : NULL;
}
