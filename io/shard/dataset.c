/*
 * dataset.c - opens all shards of a directory and reports all of their faults
 * in one message. The HDF5 file of a shard is then closed until it is read; the
 * last few stay open.
 */
#include "io/shard/dataset.h"

#include "core/text/words.h"
#include "io/shard/shard_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPEN = 16, MOST_LISTED = 20 };

/* A data set with its open files: the last shards read, oldest first. */
typedef struct opened {
    bm_dataset d; /* must be first */
    bm_shard *open[MOST_OPEN];
    size_t n_open;
    bm_sequences whole; /* of bm_dataset_cut: a shard's unit, .n = 0: none */
    int32_t shard, unit;
} opened;

/* Faults, one per line. */
typedef struct faults {
    char text[3600]; /* as much as fits into a message */
    size_t n, length;
    bm_status status; /* of the first; BM_ERR_FORMAT if they differ */
} faults;

static void add_fault(faults *f, bm_status status, const char *text)
{
    size_t room = sizeof f->text - f->length;
    int n = 0;

    f->status = f->n == 0 || f->status == status ? status : BM_ERR_FORMAT;
    if (f->n++ < MOST_LISTED && strlen(text) + 2 < room)
        n = snprintf(f->text + f->length, room, "\n%s", text);
    f->length += n > 0 ? (size_t)n : 0;
}

static void compare(faults *f, const bm_shard *first, const bm_shard *s)
{
    char text[1024];

    for (int k = 0; k < BM_SHARD_PROPERTIES; k++)
        if (bm_shard_compare(first, s, k, text, sizeof text))
            add_fault(f, BM_ERR_FORMAT, text);
}

static void add_missing(void *self, const char *text)
{
    add_fault(self, BM_ERR_FORMAT, text);
}

/* A shard that is opened by itself may be one of many. */
static bool is_directory(const bm_dataset *d)
{
    return strcmp(d->directory, d->paths[0]) != 0;
}

static bm_status check_complete(const bm_dataset *d, faults *f)
{
    bm_shard_member *members = calloc(d->n_shards, sizeof *members);
    bool unknown = false;

    if (members == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu shards", d->n_shards);
    for (size_t i = 0; i < d->n_shards; i++)
        members[i] = (bm_shard_member){
            .path = d->paths[i],
            .readable = true,
            .place = d->shards[i]->place,
            .sequences = bm_shard_sequences(d->shards[i]),
            .hash = bm_shard_hash(d->shards[i]),
        };
    bm_shard_complete(members, d->n_shards, add_missing, f, &unknown);
    free(members);
    return BM_OK;
}

static bm_status open_shards(bm_dataset *d)
{
    const bm_shard *first = NULL;
    faults f = {0};

    for (size_t i = 0; i < d->n_shards; i++) {
        bm_status status = bm_shard_open(&d->shards[i], d->paths[i]);

        if (status == BM_ERR_MEMORY)
            return status;
        if (status != BM_OK) {
            add_fault(&f, status, bm_last_message());
            continue;
        }
        bm_shard_file_close(d->shards[i]);
        if (first == NULL)
            first = d->shards[i];
        else
            compare(&f, first, d->shards[i]);
    }
    if (f.n == 0 && is_directory(d))
        BM_TRY(check_complete(d, &f));
    if (f.n == 1 && !is_directory(d))
        return BM_FAIL(f.status, "%s", f.text + 1); /* after the line break */
    if (f.n > 0)
        return BM_FAIL(f.status, "%s: %s in %s%s:%s", d->directory,
                       bm_count_noun((long long)f.n, "problem").text,
                       bm_count_noun((long long)d->n_shards, "shard").text,
                       f.n > MOST_LISTED ? "; run bmuf check for all" : "",
                       f.text);
    return BM_OK;
}

static bm_status make_lists(bm_dataset *d)
{
    for (size_t i = 0; i < d->n_shards; i++) {
        d->n += bm_shard_sequences(d->shards[i]);
        d->n_units += bm_shard_units(d->shards[i]);
    }
    d->lengths = malloc((2 * d->n + 1) * sizeof *d->lengths);
    d->units = malloc((d->n_units + 1) * sizeof *d->units);
    if (d->lengths == NULL || d->units == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", d->n);
    return BM_OK;
}

static void fill_units(bm_dataset *d)
{
    bm_unit_at *to = d->units;
    int64_t first = 0;

    for (size_t i = 0; i < d->n_shards; i++)
        for (size_t k = 0; k < bm_shard_units(d->shards[i]); k++) {
            bm_unit_size u = bm_shard_unit(d->shards[i], k);

            *to++ = (bm_unit_at){.shard = (int32_t)i,
                                 .unit = (int32_t)k,
                                 .first = first,
                                 .sequences = (int32_t)u.sequences,
                                 .frames = (int64_t)u.frames,
                                 .labels = (int64_t)u.labels};
            first += (int64_t)u.sequences;
        }
}

static bm_status fill(bm_dataset *d)
{
    uint64_t *hashes = malloc(d->n_shards * sizeof *hashes);
    int32_t *to = d->lengths;

    if (hashes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu hashes", d->n_shards);
    for (size_t i = 0; i < d->n_shards; i++) {
        size_t n = 2 * bm_shard_sequences(d->shards[i]);

        memcpy(to, bm_shard_lengths(d->shards[i]), n * sizeof *to);
        to += n;
        hashes[i] = bm_shard_hash(d->shards[i]);
        for (size_t k = 0; k < bm_shard_sequences(d->shards[i]); k++)
            d->unlabelled += !bm_shard_has_reference(d->shards[i], k);
    }
    d->hash = XXH3_64bits(hashes, d->n_shards * sizeof *hashes);
    free(hashes);
    for (size_t i = 0; i < d->n; i++) {
        int32_t frames = d->lengths[2 * i];

        d->frames += frames;
        d->labels += d->lengths[2 * i + 1];
        d->longest = frames > d->longest ? frames : d->longest;
    }
    d->features = bm_shard_features(d->shards[0]);
    d->classes = bm_shard_classes(d->shards[0]);
    fill_units(d);
    return BM_OK;
}

bm_status bm_dataset_open(bm_dataset **out, const char *path)
{
    opened *o = calloc(1, sizeof *o);
    bm_dataset *d = NULL;
    bm_status status = BM_OK;

    if (o == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a data set");
    d = &o->d;
    d->directory = strdup(path);
    if (d->directory == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a data set");
    BM_TRY_DONE(bm_shard_list(path, &d->paths, &d->n_shards));
    d->shards = calloc(d->n_shards, sizeof(bm_shard *));
    if (d->shards == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu shards", d->n_shards);
    BM_TRY_DONE(open_shards(d));
    BM_TRY_DONE(make_lists(d));
    BM_TRY_DONE(fill(d));
    *out = d;
    d = NULL;
done:
    bm_dataset_close(d);
    return status;
}

void bm_dataset_close(bm_dataset *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; d->shards != NULL && i < d->n_shards; i++)
        bm_shard_close(d->shards[i]);
    bm_shard_list_free(d->paths, d->n_shards);
    free(d->shards);
    free(d->units);
    free(d->lengths);
    free(d->directory);
    bm_cmvn_free(&d->norm);
    bm_sequences_free(&((opened *)(void *)d)->whole);
    free((opened *)(void *)d);
}

const bm_vocab *bm_dataset_vocab(const bm_dataset *d)
{
    return bm_shard_vocab(d->shards[0]);
}

/* Moves the shard that is read next to the end of the list; the file of the
 * first is closed if there are too many. */
static void mark_open(opened *o, bm_shard *s)
{
    size_t i = 0;

    while (i < o->n_open && o->open[i] != s)
        i++;
    if (i == o->n_open && i < MOST_OPEN) {
        o->n_open++;
    } else {
        i = i == o->n_open ? 0 : i;
        if (o->open[i] != s)
            bm_shard_file_close(o->open[i]);
        memmove(o->open + i, o->open + i + 1,
                (o->n_open - i - 1) * sizeof(bm_shard *));
    }
    o->open[o->n_open - 1] = s;
}

/* The shard of a sequence, and its number there. */
static bm_shard *shard_of(const bm_dataset *d, int64_t sequence, size_t *number)
{
    size_t k = (size_t)sequence, i = 0;

    BM_ASSERT(sequence >= 0 && k < d->n);
    for (; k >= bm_shard_sequences(d->shards[i]); i++)
        k -= bm_shard_sequences(d->shards[i]);
    *number = k;
    return d->shards[i];
}

bm_status bm_dataset_tag(bm_dataset *d, int64_t sequence, const char **out)
{
    size_t number = 0;
    bm_shard *s = shard_of(d, sequence, &number);

    mark_open((opened *)(void *)d, s);
    return bm_shard_tag(s, number, out);
}

bm_status bm_dataset_speaker(bm_dataset *d, int64_t sequence, const char **out)
{
    size_t number = 0;
    bm_shard *s = shard_of(d, sequence, &number);

    mark_open((opened *)(void *)d, s);
    return bm_shard_speaker(s, number, out);
}

bool bm_dataset_has_reference(const bm_dataset *d, int64_t sequence)
{
    size_t number = 0;
    const bm_shard *s = shard_of(d, sequence, &number);

    return bm_shard_has_reference(s, number);
}

bm_status bm_dataset_read_waveform(bm_dataset *d, int64_t sequence,
                                   bm_waveform *out)
{
    size_t number = 0;
    bm_shard *s = shard_of(d, sequence, &number);

    mark_open((opened *)(void *)d, s);
    return bm_shard_read_waveform(s, number, out);
}

bm_status bm_dataset_normalise(bm_dataset *d, const bm_cmvn *norm)
{
    BM_ASSERT(norm->dim > 0 && d->features % norm->dim == 0);
    return bm_cmvn_copy(&d->norm, norm);
}

/* ---- parts of units ------------------------------------------------------ */

/* Parts of a unit, into `to` if it is not NULL; returns their number. */
static size_t cut_unit(const bm_dataset *d, const bm_unit_at *u, int64_t frames,
                       bm_unit_at *to)
{
    bm_unit_at part = *u;
    size_t n = 0;

    part.sequences = 0;
    part.frames = part.labels = 0;
    for (int32_t i = 0; i < u->sequences; i++) {
        const int32_t *length = d->lengths + 2 * (u->first + i);

        part.sequences++;
        part.frames += length[0];
        part.labels += length[1];
        if (part.frames < frames && i + 1 < u->sequences)
            continue;
        if (to != NULL)
            to[n] = part;
        n++;
        part.first += part.sequences;
        part.skipped += part.sequences;
        part.sequences = 0;
        part.frames = part.labels = 0;
    }
    return n;
}

bm_status bm_dataset_cut(bm_dataset *d, int64_t frames)
{
    bm_unit_at *parts = NULL;
    size_t n = 0;

    for (size_t i = 0; i < d->n_units; i++)
        n += cut_unit(d, &d->units[i], frames, NULL);
    parts = malloc((n + 1) * sizeof *parts);
    if (parts == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu units", n);
    n = 0;
    for (size_t i = 0; i < d->n_units; i++)
        n += cut_unit(d, &d->units[i], frames, parts + n);
    free(d->units);
    d->units = parts;
    d->n_units = n;
    return BM_OK;
}

/* The shard's unit that `u` is a part of, in o->whole. */
static bm_status read_whole(opened *o, const bm_unit_at *u, bool packed)
{
    if (o->whole.n > 0 && o->whole.packed == packed && o->shard == u->shard &&
        o->unit == u->unit)
        return BM_OK;
    o->whole.n = 0;
    o->whole.packed = packed;
    o->shard = u->shard;
    o->unit = u->unit;
    return bm_shard_read(o->d.shards[u->shard], (size_t)u->unit, &o->whole);
}

static bm_status read_part(opened *o, const bm_unit_at *u, bm_sequences *out)
{
    const bm_shard *s = o->d.shards[u->shard];
    const bm_sequences *w = &o->whole;
    size_t n = (size_t)u->sequences, frames = 0, labels = 0;
    size_t row = o->d.features *
                 (out->packed ? bm_shard_stored(s).bytes : sizeof(float));

    BM_TRY(read_whole(o, u, out->packed));
    BM_TRY(bm_sequences_reserve(out, n, (size_t)u->frames, (size_t)u->labels,
                                o->d.features));
    for (int32_t i = 0; i < u->skipped; i++) {
        frames += (size_t)w->frames[i];
        labels += (size_t)w->labels[i];
    }
    out->n = n;
    memcpy(out->x, (const char *)w->x + frames * row, (size_t)u->frames * row);
    memcpy(out->targets, w->targets + labels,
           (size_t)u->labels * sizeof *out->targets);
    memcpy(out->frames, w->frames + u->skipped, n * sizeof *out->frames);
    memcpy(out->labels, w->labels + u->skipped, n * sizeof *out->labels);
    return BM_OK;
}

bm_status bm_dataset_read(bm_dataset *d, size_t unit, bm_sequences *out)
{
    const bm_unit_at *u = &d->units[unit];
    bm_shard *s = d->shards[u->shard];

    BM_ASSERT(unit < d->n_units);
    mark_open((opened *)(void *)d, s);
    if ((size_t)u->sequences < bm_shard_unit(s, (size_t)u->unit).sequences)
        BM_TRY(read_part((opened *)(void *)d, u, out));
    else
        BM_TRY(bm_shard_read(s, (size_t)u->unit, out));
    if (d->norm.dim > 0) {
        BM_ASSERT(!out->packed);
        bm_cmvn_apply(&d->norm, out->x, (size_t)u->frames, d->features);
    }
    return BM_OK;
}

bm_status bm_dataset_read_labels(bm_dataset *d, size_t unit, bm_sequences *out)
{
    const bm_unit_at *u = &d->units[unit];
    bm_shard *s = d->shards[u->shard];

    BM_ASSERT(unit < d->n_units);
    BM_ASSERT((size_t)u->sequences ==
              bm_shard_unit(s, (size_t)u->unit).sequences);
    mark_open((opened *)(void *)d, s);
    return bm_shard_read_labels(s, (size_t)u->unit, out);
}
