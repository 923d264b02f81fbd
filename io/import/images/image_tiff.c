/*
 * image_tiff.c - TIFF of any kind that libtiff converts to 8-bit colours. Of
 * several pages the first is read; it is turned as the file says.
 */
#include "io/import/images/image_exif.h"
#include "io/import/images/image_file_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

/* Limit of one piece of memory that libtiff takes. */
static const tmsize_t most_memory = (tmsize_t)1 << 29;

typedef struct reading {
    const bm_image_source *source;
    size_t at;
    char fault[200]; /* the first one */
} reading;

/* ---- the file in memory, as libtiff wants it ------------------------------ */

static tmsize_t read_some(thandle_t self, void *to, tmsize_t n)
{
    reading *r = self;
    size_t left = r->at < r->source->size ? r->source->size - r->at : 0;
    size_t some = n > 0 && (size_t)n < left ? (size_t)n : left;

    memcpy(to, r->source->bytes + (left > 0 ? r->at : 0), some);
    r->at += some;
    return (tmsize_t)some;
}

static tmsize_t write_none(thandle_t self, void *from, tmsize_t n)
{
    (void)self;
    (void)from;
    (void)n;
    return -1;
}

static toff_t seek(thandle_t self, toff_t offset, int whence)
{
    reading *r = self;
    size_t from = whence == SEEK_SET   ? 0
                  : whence == SEEK_CUR ? r->at
                                       : r->source->size;

    r->at =
        from + (size_t)offset; /* a negative one wraps around, as it should */
    return r->at;
}

static toff_t size(thandle_t self)
{
    return ((reading *)self)->source->size;
}

/* Mapped, uncompressed tiles of any size are read; otherwise libtiff rounds up the
 * room for a tile and calls it damaged. */
static int map(thandle_t self, void **base, toff_t *n)
{
    const bm_image_source *s = ((reading *)self)->source;

    *base = (void *)s->bytes;
    *n = s->size;
    return 1;
}

static void unmap_none(thandle_t self, void *base, toff_t n)
{
    (void)self;
    (void)base;
    (void)n;
}

static int close_none(thandle_t self)
{
    (void)self;
    return 0;
}

static int keep_fault(TIFF *tiff, void *self, const char *where,
                      const char *format, va_list args)
{
    reading *r = self;
    int n = 0;

    (void)tiff;
    (void)where;
    if (r->fault[0] != '\0')
        return 1;
    n = snprintf(r->fault, sizeof r->fault, "TIFF: ");
    if (strncmp(format, "Read error at scanline", 22) == 0)
        format = "its pixels end too early"; /* the number may be -1 */
    vsnprintf(r->fault + n, sizeof r->fault - (size_t)n, format, args);
    return 1; /* libtiff prints nothing */
}

static int keep_silent(TIFF *tiff, void *self, const char *where,
                       const char *format, va_list args)
{
    (void)tiff;
    (void)self;
    (void)where;
    (void)format;
    (void)args;
    return 1;
}

static TIFF *open_memory(reading *r)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    TIFF *tiff = NULL;

    if (options == NULL)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, most_memory);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_fault, r);
    TIFFOpenOptionsSetWarningHandlerExtR(options, keep_silent, r);
    tiff = TIFFClientOpenExt(r->source->path, "r", r, read_some, write_none,
                             seek, close_none, size, map, unmap_none, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

/* ---- pixels --------------------------------------------------------------- */

/* What the samples of a file are. */
typedef struct kind {
    uint16_t bits, format, photometric;
    uint16_t
        alpha_of_grey; /* EXTRASAMPLE_.., where each grey is followed by one */
} kind;

static kind kind_of(TIFF *tiff)
{
    kind k = {.photometric = PHOTOMETRIC_RGB};
    uint16_t samples = 0, planes = 0, n = 0, *extra = NULL;

    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &k.bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &k.format);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &k.photometric);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &n, &extra);
    if (k.photometric <= PHOTOMETRIC_MINISBLACK && samples == 2 && n == 1 &&
        planes == PLANARCONFIG_CONTIG)
        k.alpha_of_grey = extra[0];
    return k;
}

/* Kinds that libtiff would show wrongly. */
static bool check_kind(const bm_image_source *s, kind k, bm_problem *problem)
{
    const char *what = NULL;

    if (k.format == SAMPLEFORMAT_INT)
        what = "numbers with a sign";
    else if (k.alpha_of_grey != EXTRASAMPLE_UNSPECIFIED && k.bits != 8)
        what = "grey and alpha of other than 8 bits";
    else if (k.alpha_of_grey == EXTRASAMPLE_ASSOCALPHA &&
             k.photometric == PHOTOMETRIC_MINISWHITE)
        what = "grey with 0 for white, multiplied by alpha";
    if (what != NULL)
        bm_problem_set(problem, "of a kind that is not read",
                       "%s: a TIFF of %s; convert it to grey or RGB with 8 "
                       "bits and without alpha, or leave it out",
                       s->path, what);
    return what == NULL;
}

/* Colours, which libtiff multiplies by alpha, to grey on white. `multiply`: it did
 * not. */
static void flatten(const uint32_t *colours, size_t n, bool multiply,
                    uint8_t *grey)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t c = colours[i];
        unsigned value = bm_image_luma(TIFFGetR(c), TIFFGetG(c), TIFFGetB(c));
        unsigned alpha = TIFFGetA(c);
        unsigned sum =
            (multiply ? (value * alpha + 127) / 255 : value) + 255 - alpha;

        grey[i] = (uint8_t)(sum < 255 ? sum : 255);
    }
}

/* Pixels as they are stored: in the file's own orientation nothing is flipped,
 * and libtiff cannot make columns of rows. */
static bm_status decode(bm_line_image *out, const bm_image_source *s,
                        TIFF *tiff, reading *r, bm_problem *problem)
{
    uint32_t width = 0, height = 0, *colours = NULL;
    uint16_t orientation = ORIENTATION_TOPLEFT;
    kind k = kind_of(tiff);
    char why[1024] = ""; /* as libtiff has it */
    bm_status status = BM_OK;

    if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
        TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) != 1)
        return BM_OK;
    BM_TRY(bm_image_room(out, s, width, height, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    if (TIFFRGBAImageOK(tiff, why) != 1) {
        bm_problem_set(problem, "of a kind that is not read",
                       "%s: a TIFF that libtiff cannot show (%s); convert it "
                       "to grey or RGB with 8 bits, or leave it out",
                       s->path, why);
        return BM_OK;
    }
    if (!check_kind(s, k, problem))
        return BM_OK;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    colours = malloc(out->width * out->height * sizeof *colours);
    if (colours == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu pixels of %s",
                       out->width * out->height, s->path);
    if (TIFFReadRGBAImageOriented(tiff, width, height, colours, orientation,
                                  1) == 1) {
        flatten(colours, out->width * out->height,
                k.alpha_of_grey == EXTRASAMPLE_UNASSALPHA, out->grey);
        status = bm_image_turn(out, orientation);
        r->fault[0] = '\0';
    } else if (r->fault[0] == '\0') {
        snprintf(r->fault, sizeof r->fault, "TIFF: cannot be decoded");
    }
    free(colours);
    return status;
}

bm_status bm_image_tiff(bm_line_image *out, const bm_image_source *s,
                        bm_problem *problem)
{
    reading r = {.source = s};
    TIFF *tiff = open_memory(&r);
    bm_status status = BM_OK;

    if (tiff != NULL) {
        status = decode(out, s, tiff, &r, problem);
        TIFFClose(tiff);
    }
    if (status == BM_OK && !bm_problem_is(problem) &&
        (out->grey == NULL || r.fault[0] != '\0'))
        bm_image_damaged(
            s, r.fault[0] != '\0' ? r.fault : "TIFF: it has no image", problem);
    return status;
}
