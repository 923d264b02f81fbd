/*
 * import_idx.c - images in an IDX file, MNIST's format, with a class for each in
 * a second one. A frame is a column of pixels, from left to right.
 *
 * An IDX file is two zero bytes, a type (8: bytes), the number of dimensions,
 * each of them in four bytes, largest first, and the numbers. It may be
 * compressed with gzip. One image at a time is read, so nothing is allocated by
 * a size that the file only claims.
 */
#include "core/file/path.h"
#include "io/import/images/image_frames.h"
#include "io/import/importer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LARGEST = 4096 }; /* rows and columns of an image */

typedef struct idx_settings {
    const char *labels;
    long pad;
} idx_settings;

/* The first row is no feature of the images, and is not recorded as one. */
static const bm_option options[] = {
    {"labels", BM_TEXT, offsetof(idx_settings, labels), "", 0, 0, "FILE",
     "the classes, an IDX file; without it: the images' file with 'labels' "
     "for 'images' and 'idx1' for 'idx3' in its name"},
    {"pad", BM_INT, offsetof(idx_settings, pad), "0", 0, 64, "pixels",
     "background added on all four sides"},
    {0},
};

typedef struct idx_file {
    char path[4096];
    gzFile file;
    size_t dim[3];    /* images, rows, columns */
    size_t read;      /* images */
    const char *noun; /* of them: "image", "class" */
} idx_file;

typedef struct idx {
    idx_file images, labels;
    char *described;
    uint8_t *grey; /* [rows, columns] */
    float *x;      /* [frames, features] */
    size_t frames, features;
    char id[32], text[8];
} idx;

/* ---- files --------------------------------------------------------------- */

static bm_status damaged(const idx_file *f, const char *what)
{
    return BM_FAIL(BM_ERR_FORMAT, "%s: %s", f->path, what);
}

/* After fewer bytes than there should be. BM_OK: the file ends. */
static bm_status check_gzip(const idx_file *f)
{
    int error = Z_OK;

    (void)gzerror(f->file, &error);
    if (error == Z_ERRNO)
        return BM_FAIL(BM_ERR_IO, "cannot read %s: %s", f->path,
                       strerror(errno));
    if (error != Z_OK && error != Z_BUF_ERROR)
        return damaged(f, "its gzip data are damaged; fetch it again");
    return BM_OK;
}

/* Fails unless all n bytes are there. */
static bm_status read_bytes(idx_file *f, void *out, size_t n)
{
    if (gzread(f->file, out, (unsigned)n) == (int)n)
        return BM_OK;
    BM_TRY(check_gzip(f));
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s ends in %s %zu of %zu; fetch it again, or pack the "
                   "file it was made from",
                   f->path, f->noun, f->read + 1, f->dim[0]);
}

static bm_status read_header(idx_file *f, size_t rank)
{
    unsigned char head[4] = {0}, size[4];
    bool whole = gzread(f->file, head, sizeof head) == (int)sizeof head;

    if (!whole)
        BM_TRY(check_gzip(f));
    if (!whole || head[0] != 0 || head[1] != 0 || head[2] != 8 ||
        head[3] != rank)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is no IDX file of bytes in %zu %s, as %s are; its "
                       "first bytes should be 0 0 8 %zu",
                       f->path, rank, rank == 1 ? "dimension" : "dimensions",
                       rank == 1 ? "classes" : "images", rank);
    for (size_t i = 0; i < rank; i++) {
        if (gzread(f->file, size, sizeof size) != (int)sizeof size) {
            BM_TRY(check_gzip(f));
            return damaged(f, "ends in its header; fetch it again");
        }
        f->dim[i] = (size_t)size[0] << 24 | (size_t)size[1] << 16 |
                    (size_t)size[2] << 8 | size[3];
    }
    f->read = 0;
    return BM_OK;
}

static bm_status open_file(idx_file *f, size_t rank)
{
    f->file = gzopen(f->path, "rb");
    if (f->file == NULL)
        return BM_FAIL(errno == ENOENT ? BM_ERR_MISSING : BM_ERR_IO,
                       "cannot open %s: %s", f->path, strerror(errno));
    BM_TRY(read_header(f, rank));
    if (f->dim[0] == 0)
        return damaged(f, "it has no images");
    return BM_OK;
}

/* Back to the first image. At the end of a pass: fails if there is more. */
static bm_status rewind_file(idx_file *f, size_t rank)
{
    char more = 0;

    if (gzread(f->file, &more, 1) > 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has more bytes than the %zu images of its header",
                       f->path, f->dim[0]);
    if (gzrewind(f->file) != 0)
        return BM_FAIL(BM_ERR_IO, "cannot read %s again", f->path);
    return read_header(f, rank);
}

/* Replaces the first `from` in the file's name by `to`. */
static void rename_word(char *path, size_t room, const char *from,
                        const char *to)
{
    char *at = strstr(path + bm_path_folder_length(path), from), rest[4096];

    if (at == NULL)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, room - (size_t)(at - path), "%s%s", to, rest);
}

static bm_status find_labels(idx *self, const char *given)
{
    char *path = self->labels.path;
    size_t room = sizeof self->labels.path;

    if (given[0] != '\0') {
        snprintf(path, room, "%s", given);
        return BM_OK;
    }
    snprintf(path, room, "%s", self->images.path);
    rename_word(path, room, "images", "labels");
    rename_word(path, room, "idx3", "idx1");
    if (strcmp(path, self->images.path) == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "pack --idx %s: give the file of its classes with "
                       "--labels FILE",
                       path);
    return BM_OK;
}

/* ---- the importer -------------------------------------------------------- */

static bm_status idx_open(bm_importer *i, const bm_import_source *source)
{
    const idx_settings *s = i->settings;
    idx *self = calloc(1, sizeof *self);
    size_t rows = 0, columns = 0;

    i->self = self;
    if (self == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    self->images.noun = "image";
    self->labels.noun = "class";
    snprintf(self->images.path, sizeof self->images.path, "%s", source->path);
    BM_TRY(open_file(&self->images, 3));
    BM_TRY(find_labels(self, s->labels));
    BM_TRY(open_file(&self->labels, 1));
    if (self->images.dim[0] != self->labels.dim[0])
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has %zu images, but %s has %zu classes; give two "
                       "files of one set",
                       self->images.path, self->images.dim[0],
                       self->labels.path, self->labels.dim[0]);
    rows = self->images.dim[1];
    columns = self->images.dim[2];
    if (rows < 1 || columns < 1 || rows > LARGEST || columns > LARGEST)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: images of %zu x %zu pixels; 1 to %d are possible",
                       self->images.path, rows, columns, LARGEST);
    self->features = rows + 2 * (size_t)s->pad;
    self->frames = columns + 2 * (size_t)s->pad;
    self->grey = malloc(rows * columns);
    self->x = calloc(self->frames * self->features, sizeof *self->x);
    if (self->grey == NULL || self->x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an image");
    return bm_features_describe(&self->described, i->ops->kind, options + 1, s,
                                NULL);
}

static void idx_close(bm_importer *i)
{
    idx *self = i->self;

    if (self == NULL)
        return;
    if (self->images.file != NULL)
        gzclose(self->images.file);
    if (self->labels.file != NULL)
        gzclose(self->labels.file);
    free(self->described);
    free(self->grey);
    free(self->x);
    free(self);
}

static bm_status read_class(idx *self)
{
    unsigned char class = 0;

    BM_TRY(read_bytes(&self->labels, &class, 1));
    self->labels.read++;
    snprintf(self->text, sizeof self->text, "%u", class);
    return BM_OK;
}

static bm_status idx_text(bm_importer *i, const char **text)
{
    idx *self = i->self;

    *text = NULL;
    if (self->labels.read == self->labels.dim[0])
        return rewind_file(&self->labels, 1);
    BM_TRY(read_class(self));
    *text = self->text;
    return BM_OK;
}

static bm_status read_image(idx *self, size_t pad)
{
    size_t rows = self->images.dim[1], columns = self->images.dim[2];

    BM_TRY(read_bytes(&self->images, self->grey, rows * columns));
    self->images.read++;
    for (size_t t = 0; t < columns; t++) {
        float *frame = self->x + (t + pad) * self->features + pad;

        for (size_t h = 0; h < rows; h++)
            frame[h] = (float)(self->grey[h * columns + t] * bm_image_scale);
    }
    return BM_OK;
}

static bm_status idx_next(bm_importer *i, bm_item *item)
{
    idx *self = i->self;

    *item = (bm_item){0};
    if (self->images.read == self->images.dim[0]) {
        BM_TRY(rewind_file(&self->images, 3));
        return rewind_file(&self->labels, 1);
    }
    snprintf(self->id, sizeof self->id, "%06zu", self->images.read);
    BM_TRY(read_image(self, (size_t)((const idx_settings *)i->settings)->pad));
    BM_TRY(read_class(self));
    *item = (bm_item){
        .id = self->id,
        .speaker = "",
        .text = self->text,
        .has_text = true,
        .x = self->x,
        .frames = self->frames,
        .features = self->features,
    };
    return BM_OK;
}

static size_t idx_size(const bm_importer *i)
{
    return ((const idx *)i->self)->images.dim[0];
}

static void idx_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const idx *self = i->self;

    *meta = (bm_shard_meta){.features = self->features,
                            .features_text = self->described,
                            .quant_scale = bm_image_scale};
}

const bm_importer_ops bm_importer_idx = {
    .name = "idx",
    .kind = "idx",
    .help = "Images and classes in IDX files (MNIST's format)",
    .section = "features",
    .options = options,
    .settings_size = sizeof(idx_settings),
    .store = "u8",
    .words = true,
    .open = idx_open,
    .close = idx_close,
    .text = idx_text,
    .next = idx_next,
    .size = idx_size,
    .meta = idx_meta,
};
