/*
 * kaldi_file.c - an object is '\0' 'B', a token such as "FM " and its data, or
 * text: "[ 1 2", a line for each row, "]". Sizes are '\4' and 32 bits, those of
 * compressed matrices 32 bits alone. All numbers are little-endian.
 *
 * A size is compared with the bytes that are left before it is used.
 */
#include "io/import/files/kaldi_file.h"

#include "core/file/file.h"
#include "core/grow.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "Kaldi's files are little-endian");

enum { DEFLATE_RATIO = 1032, LONGEST_NUMBER = 64, CHUNK = 1 << 16 };

static const char damaged[] = "damaged or truncated";

bm_status bm_kaldi_open(bm_kaldi_file *f, const char *path)
{
    struct stat info = {0};
    int fd = -1;

    *f = (bm_kaldi_file){.path = path};
    BM_TRY(bm_file_open_regular(&fd, path));
    if (fstat(fd, &info) == 0)
        f->file = gzdopen(fd, "rb");
    if (f->file == NULL) {
        close(fd);
        return BM_FAIL(BM_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    (void)gzungetc(gzgetc(f->file), f->file); /* looks whether it is gzip */
    f->most = (uint64_t)info.st_size *
              (gzdirect(f->file) ? 1 : (uint64_t)DEFLATE_RATIO);
    return BM_OK;
}

void bm_kaldi_close(bm_kaldi_file *f)
{
    if (f->file != NULL)
        gzclose(f->file);
    f->file = NULL;
}

static uint64_t at(const bm_kaldi_file *f)
{
    z_off_t offset = gztell(f->file);

    return offset > 0 ? (uint64_t)offset : 0;
}

static void fault(const bm_kaldi_file *f, uint64_t offset, const char *kind,
                  const char *what, bm_problem *problem)
{
    if (!bm_problem_is(problem))
        bm_problem_set(problem, kind, "%s, byte %" PRIu64 ": %s", f->path,
                       offset, what);
}

/* Fewer bytes were read than there should be. */
static bm_status cut_short(const bm_kaldi_file *f, bm_problem *problem)
{
    int error = Z_OK;

    (void)gzerror(f->file, &error);
    if (error == Z_ERRNO)
        return BM_FAIL(BM_ERR_IO, "cannot read %s: %s", f->path,
                       strerror(errno));
    fault(f, at(f), damaged,
          error != Z_OK && error != Z_BUF_ERROR
              ? "its gzip data are damaged; make it again"
              : "the file ends within an object; make it again",
          problem);
    return BM_OK;
}

bm_status bm_kaldi_seek(bm_kaldi_file *f, uint64_t offset, bm_problem *problem)
{
    if (offset >= f->most || gzseek(f->file, (z_off_t)offset, SEEK_SET) < 0)
        fault(f, offset, damaged,
              "the file is shorter; the list and the archive do not belong "
              "together",
              problem);
    return BM_OK;
}

/* Sets *problem if there are fewer than n bytes. */
static bm_status take(bm_kaldi_file *f, void *out, size_t n,
                      bm_problem *problem)
{
    char *to = out;

    while (n > 0) {
        unsigned part = n < (size_t)1 << 30 ? (unsigned)n : 1U << 30;

        if (gzread(f->file, to, part) != (int)part)
            return cut_short(f, problem);
        to += part;
        n -= part;
    }
    return BM_OK;
}

bm_status bm_kaldi_key(bm_kaldi_file *f, char *key, size_t room,
                       bm_problem *problem)
{
    size_t n = 0;
    uint64_t begin = 0;
    int c = gzgetc(f->file);

    while (c == '\n' || c == '\r')
        c = gzgetc(f->file);
    begin = at(f);
    key[0] = '\0';
    if (c == -1) { /* the end, or a failure */
        int error = Z_OK;

        (void)gzerror(f->file, &error);
        return error != Z_OK ? cut_short(f, problem) : BM_OK;
    }
    for (; c > ' ' && n + 1 < room; c = gzgetc(f->file))
        key[n++] = (char)c;
    key[n] = '\0';
    if (n == 0 || (c != ' ' && c != '\t'))
        fault(f, begin > 0 ? begin - 1 : 0, "not an archive",
              "there is no key, which an object of an archive begins with",
              problem);
    return BM_OK;
}

/* ---- binary objects ------------------------------------------------------ */

/* '\4' and an integer. */
static bm_status take_size(bm_kaldi_file *f, int32_t *out, bm_problem *problem)
{
    unsigned char bytes[5] = {0};

    BM_TRY(take(f, bytes, sizeof bytes, problem));
    memcpy(out, bytes + 1, sizeof *out);
    if (!bm_problem_is(problem) && bytes[0] != 4)
        fault(
            f, at(f) - sizeof bytes, damaged,
            "no integer of 4 bytes, which should be here; make the file again",
            problem);
    return BM_OK;
}

/* Checks the size of a matrix of `width` bytes an element, and `more` a column,
 * against the bytes that are left, and makes room for it. */
static bm_status shape(const bm_kaldi_file *f, int32_t rows, int32_t columns,
                       size_t width, size_t more, bm_frames *x,
                       bm_problem *problem)
{
    uint64_t offset = at(f), left = offset < f->most ? f->most - offset : 0;
    uint64_t row = (uint64_t)(columns > 0 ? columns : 0) * width;

    if (bm_problem_is(problem))
        return BM_OK;
    if (rows == 0 || columns == 0)
        fault(f, offset, "no frames", "an empty matrix", problem);
    else if (rows < 0 || row == 0 || row > left ||
             (uint64_t)rows > left / row ||
             (uint64_t)columns * more > left - row * (uint64_t)rows)
        fault(f, offset, damaged,
              "the size of the matrix is impossible, or the file is truncated; "
              "make it again",
              problem);
    if (bm_problem_is(problem))
        return BM_OK;
    return bm_frames_shape(x, (size_t)rows, (size_t)columns);
}

static bm_status take_floats(bm_kaldi_file *f, bm_frames *x,
                             bm_problem *problem)
{
    return take(f, x->x, x->n * x->dim * sizeof *x->x, problem);
}

static bm_status take_doubles(bm_kaldi_file *f, bm_frames *x,
                              bm_problem *problem)
{
    double chunk[512] = {0};
    size_t n = x->n * x->dim;

    for (size_t i = 0; i < n && !bm_problem_is(problem);) {
        size_t part = n - i < 512 ? n - i : 512;

        BM_TRY(take(f, chunk, part * sizeof *chunk, problem));
        for (size_t k = 0; k < part; k++)
            x->x[i++] = (float)chunk[k];
    }
    return BM_OK;
}

/* FM, DM, FV, DV. */
static bm_status plain(bm_kaldi_file *f, const char *token, bm_frames *x,
                       bm_problem *problem)
{
    bool wide = token[0] == 'D', vector = token[1] == 'V';
    int32_t rows = 1, columns = 0;

    if (!vector)
        BM_TRY(take_size(f, &rows, problem));
    if (!bm_problem_is(problem))
        BM_TRY(take_size(f, &columns, problem));
    BM_TRY(shape(f, rows, columns, wide ? 8 : 4, 0, x, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    return wide ? take_doubles(f, x, problem) : take_floats(f, x, problem);
}

/* The value of a byte between percentiles of its column. */
static float between(const float p[4], uint8_t byte)
{
    if (byte <= 64)
        return p[0] + (p[1] - p[0]) * (float)byte * (1 / 64.0f);
    if (byte <= 192)
        return p[1] + (p[2] - p[1]) * (float)(byte - 64) * (1 / 128.0f);
    return p[2] + (p[3] - p[2]) * (float)(byte - 192) * (1 / 63.0f);
}

/* CM: four percentiles of each column, then bytes, column by column. */
static void by_columns(const uint8_t *data, float least, float range,
                       bm_frames *x)
{
    const uint8_t *bytes = data + 8 * x->dim;
    static const float unit = 1.52590218966964e-05f; /* 1 / 65535 */

    for (size_t c = 0; c < x->dim; c++) {
        float p[4];

        for (size_t k = 0; k < 4; k++) {
            uint16_t u = 0;

            memcpy(&u, data + 8 * c + 2 * k, sizeof u);
            p[k] = least + range * unit * (float)u;
        }
        for (size_t t = 0; t < x->n; t++)
            x->x[t * x->dim + c] = between(p, bytes[c * x->n + t]);
    }
}

/* CM2: 16 bits, CM3: 8 bits, row by row. */
static void by_rows(const uint8_t *data, size_t width, float least, float range,
                    bm_frames *x)
{
    float unit = range * (width == 2 ? 1 / 65535.0f : 1 / 255.0f);

    for (size_t i = 0; i < x->n * x->dim; i++) {
        uint16_t u = data[i * width];

        if (width == 2)
            memcpy(&u, data + 2 * i, sizeof u);
        x->x[i] = least + (float)u * unit;
    }
}

static bm_status compressed(bm_kaldi_file *f, const char *token, bm_frames *x,
                            bm_problem *problem)
{
    size_t width = token[2] == '2' ? 2 : 1, heads = token[2] == '\0' ? 8 : 0;
    struct head {
        float least, range;
        int32_t rows, columns;
    } head = {0};
    uint8_t *data = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(take(f, &head, sizeof head, problem));
    BM_TRY(shape(f, head.rows, head.columns, width, heads, x, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    size = x->dim * heads + x->n * x->dim * width;
    data = malloc(size);
    if (data == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a matrix of %s", f->path);
    status = take(f, data, size, problem);
    if (status == BM_OK && !bm_problem_is(problem)) {
        if (heads > 0)
            by_columns(data, head.least, head.range, x);
        else
            by_rows(data, width, head.least, head.range, x);
    }
    free(data);
    return status;
}

/* After '\0'. */
static bm_status binary(bm_kaldi_file *f, bm_frames *x, bm_problem *problem)
{
    char token[5] = "";
    uint64_t begin = at(f);
    int c = gzgetc(f->file);

    for (size_t n = 0; c == 'B' && n < sizeof token; n++) {
        int next = gzgetc(f->file);

        if (next == ' ' || next == -1)
            break;
        token[n < 4 ? n : 4] = (char)(n < 4 ? next : '\0');
    }
    if (strcmp(token, "FM") == 0 || strcmp(token, "DM") == 0 ||
        strcmp(token, "FV") == 0 || strcmp(token, "DV") == 0)
        return plain(f, token, x, problem);
    if (strcmp(token, "CM") == 0 || strcmp(token, "CM2") == 0 ||
        strcmp(token, "CM3") == 0)
        return compressed(f, token, x, problem);
    fault(f, begin, "not a matrix",
          "no matrix or vector of floats begins here; the list and the archive "
          "do not belong together, or it holds something else",
          problem);
    return BM_OK;
}

/* ---- texts --------------------------------------------------------------- */

/* The next word of a text object, "\n" for the end of a line, "" at the end of
 * the file or for a word that is too long. */
static void next_word(bm_kaldi_file *f, char word[LONGEST_NUMBER])
{
    size_t n = 0;
    int c = gzgetc(f->file);

    while (c == ' ' || c == '\t' || c == '\r')
        c = gzgetc(f->file);
    word[0] = '\0';
    if (c == '\n') {
        memcpy(word, "\n", 2);
        return;
    }
    if (c == '[' || c == ']') { /* "1]" is two words */
        word[0] = (char)c;
        word[1] = '\0';
        return;
    }
    for (; c > ' ' && c != ']' && n + 1 < LONGEST_NUMBER; c = gzgetc(f->file))
        word[n++] = (char)c;
    if (c != -1)
        (void)gzungetc(c, f->file);
    word[n + 1 < LONGEST_NUMBER ? n : 0] = '\0';
}

/* The end of a row whose numbers began at `begin`; false: of another length than
 * the others. */
static bool end_row(bm_frames *x, size_t begin, size_t n)
{
    if (n == begin)
        return true;
    if (x->n > 0 && n - begin != x->dim)
        return false;
    x->dim = n - begin;
    x->n++;
    return true;
}

static bm_status text(bm_kaldi_file *f, bm_frames *x, bm_problem *problem)
{
    char word[LONGEST_NUMBER], *end = NULL;
    size_t n = 0, begin = 0;

    x->n = x->dim = 0;
    next_word(f, word);
    if (strcmp(word, "[") != 0) {
        fault(f, at(f), "not a matrix",
              "neither a binary matrix nor the \"[\" of a text one; the list "
              "and the archive do not belong together, or it holds something "
              "else",
              problem);
        return BM_OK;
    }
    for (;;) {
        bool stop = false;

        next_word(f, word);
        stop = strcmp(word, "]") == 0;
        if (stop || strcmp(word, "\n") == 0) {
            if (!end_row(x, begin, n))
                fault(f, at(f), damaged, "rows of different lengths", problem);
            begin = n;
            if (stop || bm_problem_is(problem))
                break;
            continue;
        }
        if (word[0] == '\0')
            return cut_short(f, problem);
        BM_TRY(bm_grow(&x->x, n, &x->room, sizeof *x->x));
        x->x[n++] = strtof(word, &end);
        if (*end != '\0') {
            fault(f, at(f), damaged, "a word that is not a number", problem);
            return BM_OK;
        }
    }
    if (x->n == 0)
        fault(f, at(f), "no frames", "an empty matrix", problem);
    return BM_OK;
}

bm_status bm_kaldi_matrix(bm_kaldi_file *f, bm_frames *x, bm_problem *problem)
{
    int c = gzgetc(f->file);

    if (c == '\0')
        return binary(f, x, problem);
    if (c == -1)
        return cut_short(f, problem);
    (void)gzungetc(c, f->file);
    return text(f, x, problem);
}

/* ---- integers ------------------------------------------------------------ */

static bm_status fit_doubles(bm_doubles *out, size_t rows, size_t columns)
{
    size_t n = rows * columns;
    double *grown = NULL;

    if (n > out->room) {
        grown = realloc(out->x, n * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu numbers", n);
        out->x = grown;
        out->room = n;
    }
    out->rows = rows;
    out->columns = columns;
    return BM_OK;
}

/* After the token of DM. x: scratch, of which the size is checked. */
static bm_status exact(bm_kaldi_file *f, bm_frames *x, bm_doubles *out,
                       bm_problem *problem)
{
    int32_t rows = 0, columns = 0;

    BM_TRY(take_size(f, &rows, problem));
    if (!bm_problem_is(problem))
        BM_TRY(take_size(f, &columns, problem));
    BM_TRY(shape(f, rows, columns, sizeof *out->x, 0, x, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    BM_TRY(fit_doubles(out, x->n, x->dim));
    return take(f, out->x, x->n * x->dim * sizeof *out->x, problem);
}

/* Any other form. */
static bm_status widen(bm_kaldi_file *f, bm_frames *x, bm_doubles *out,
                       bm_problem *problem)
{
    BM_TRY(bm_kaldi_matrix(f, x, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    BM_TRY(fit_doubles(out, x->n, x->dim));
    for (size_t i = 0; i < x->n * x->dim; i++)
        out->x[i] = x->x[i];
    return BM_OK;
}

bm_status bm_kaldi_doubles(bm_kaldi_file *f, bm_doubles *out,
                           bm_problem *problem)
{
    static const char token[5] = {'\0', 'B', 'D', 'M', ' '};
    char found[sizeof token] = "";
    uint64_t begin = at(f);
    bm_frames x = {0};
    bm_status status = BM_OK;

    if (gzread(f->file, found, sizeof found) == (int)sizeof found &&
        memcmp(found, token, sizeof token) == 0) {
        status = exact(f, &x, out, problem);
    } else {
        status = bm_kaldi_seek(f, begin, problem);
        if (status == BM_OK && !bm_problem_is(problem))
            status = widen(f, &x, out, problem);
    }
    bm_frames_free(&x);
    return status;
}

/* After '\0': 'B', a count n, and n times '\4' and an integer. */
static bm_status binary_integers(bm_kaldi_file *f, bm_integers *out,
                                 bm_problem *problem)
{
    uint64_t begin = at(f);
    int32_t n = 0;
    int c = 0;

    if (gzgetc(f->file) != 'B') {
        fault(f, begin, damaged,
              "no binary object begins here; make the file "
              "again",
              problem);
        return BM_OK;
    }
    c = gzgetc(f->file);
    if (c == 'F' || c == 'D' || c == 'C')
        fault(f, begin, "not integers",
              "floats, where there should be integers; give an alignment, such "
              "as ali-to-pdf writes",
              problem);
    (void)gzungetc(c, f->file);
    if (!bm_problem_is(problem))
        BM_TRY(take_size(f, &n, problem));
    if (!bm_problem_is(problem) &&
        (n < 0 || (uint64_t)n > (f->most - at(f)) / 5))
        fault(f, at(f), damaged,
              "the number of integers is impossible, or the file is truncated; "
              "make or copy it again",
              problem);
    if (bm_problem_is(problem))
        return BM_OK;
    BM_TRY(bm_grow(&out->x, (size_t)n, &out->room, sizeof *out->x));
    for (; out->n < (size_t)n && !bm_problem_is(problem); out->n++)
        BM_TRY(take_size(f, &out->x[out->n], problem));
    return BM_OK;
}

static bm_status text_integers(bm_kaldi_file *f, bm_integers *out,
                               bm_problem *problem)
{
    char word[LONGEST_NUMBER], *end = NULL;

    for (next_word(f, word); word[0] != '\0' && word[0] != '\n';
         next_word(f, word)) {
        long x = strtol(word, &end, 10);

        if (word[0] == '[' || word[0] == ']') /* kaldiio writes them */
            continue;
        if (*end != '\0' || x < INT32_MIN || x > INT32_MAX) {
            fault(f, at(f), damaged,
                  "a word that is not an integer; give an alignment, such as "
                  "ali-to-pdf writes",
                  problem);
            return BM_OK;
        }
        BM_TRY(bm_grow(&out->x, out->n, &out->room, sizeof *out->x));
        out->x[out->n++] = (int32_t)x;
    }
    return BM_OK;
}

bm_status bm_kaldi_integers(bm_kaldi_file *f, bm_integers *out,
                            bm_problem *problem)
{
    int c = gzgetc(f->file);

    out->n = 0;
    if (c == '\0')
        return binary_integers(f, out, problem);
    if (c == -1)
        return cut_short(f, problem);
    (void)gzungetc(c, f->file);
    return text_integers(f, out, problem);
}
