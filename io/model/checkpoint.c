/*
 * checkpoint.c - saving and loading. All ranks have the same table of slices
 * (checkpoint_slices.h), and take the same steps: for every state, from its
 * first element to its last, a chunk at a time.
 */
#include "io/model/checkpoint.h"

#include "io/model/checkpoint_slices.h"
#include "io/model/model_tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 }; /* floats that are held or sent at once */

typedef struct job {
    bm_comm *comm;          /* borrowed */
    const bm_checkpoint *c; /* borrowed */
    const char *path;       /* loading; borrowed */
    bm_state_slices slices;
    float *chunk;  /* [CHUNK] */
    bm_st_file *f; /* loading */

    /* saving, on rank 0 */
    const char *const *paths; /* [n_paths]; borrowed */
    int n_paths;
    bm_st_writer *w[BM_CHECKPOINT_PATHS]; /* NULL: this path has failed */
    bm_saved saved;
} job;

/* Collective. Allocates, and gathers the table of slices. */
static bm_status start(job *j, bm_comm *comm, const bm_checkpoint *c)
{
    bm_status status = BM_OK;

    *j = (job){.comm = comm, .c = c};
    j->chunk = malloc(CHUNK * sizeof *j->chunk);
    if (j->chunk == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a checkpoint");
    BM_TRY(bm_comm_agree(comm, status));
    return bm_state_slices_gather(&j->slices, comm, c->states, c->n_states,
                                  c->params->n);
}

static void end(job *j)
{
    for (int i = 0; i < j->n_paths; i++)
        bm_st_close(j->w[i]);
    bm_st_free(j->f);
    bm_state_slices_free(&j->slices);
    free(j->chunk);
}

static bool is_model(const char *name)
{
    return strcmp(name, "model") == 0;
}

static bm_st_tensor tensor_of(const char *name, size_t whole)
{
    bm_st_tensor t = {.dtype = BM_F32, .rank = 1, .dim = {whole}};

    snprintf(t.name, sizeof t.name, "state.%s", name);
    return t;
}

/* ---- saving -------------------------------------------------------------- */

bool bm_disk_failed(bm_status status)
{
    return status == BM_ERR_IO || status == BM_ERR_CREATE;
}

/* A step of writing path i has ended so. A path whose disk fails is given up;
 * that is a failure only if it was the last one. */
static bm_status settle(job *j, int i, bm_status status)
{
    if (!bm_disk_failed(status))
        return status;
    if (j->saved.lost++ == 0)
        snprintf(j->saved.why, sizeof j->saved.why, "%s", bm_last_message());
    bm_st_close(j->w[i]);
    j->w[i] = NULL;
    if (j->saved.lost < j->n_paths)
        return BM_OK;
    return BM_FAIL(status, "%s", j->saved.why);
}

static bm_status write_texts(const job *j, bm_st_writer *w)
{
    char manifest[20];

    snprintf(manifest, sizeof manifest, "%016" PRIx64, j->c->manifest);
    BM_TRY(bm_st_meta(w, "format", BM_CHECKPOINT_FORMAT));
    BM_TRY(bm_st_meta(w, "manifest", manifest));
    for (const bm_text *t = j->c->texts; t != NULL && t->key != NULL; t++)
        BM_TRY(bm_st_meta(w, t->key, t->text));
    return BM_OK;
}

/* On rank 0: writes everything except the states. */
static bm_status begin_file(const job *j, bm_st_writer *w)
{
    static const bm_st_tensor position = {"position", BM_I64, 1, {2}, 2};
    static const bm_st_tensor numbers = {
        "numbers", BM_F64, 1, {BM_CHECKPOINT_NUMBERS}, BM_CHECKPOINT_NUMBERS};
    int64_t at[2] = {j->c->position.epoch, j->c->position.block};

    BM_TRY(write_texts(j, w));
    BM_TRY(bm_st_declare(w, &position));
    BM_TRY(bm_st_declare(w, &numbers));
    for (size_t i = 0; i < j->slices.n;
         i = bm_state_slices_end(&j->slices, i)) {
        const bm_state_slice *slice = &j->slices.rows[i];
        bm_st_tensor t = tensor_of(slice->name, slice->whole);

        if (is_model(slice->name))
            BM_TRY(bm_model_declare(w, j->c->params, "model."));
        else
            BM_TRY(bm_st_declare(w, &t));
    }
    BM_TRY(bm_st_write(w, at, sizeof at));
    return bm_st_write(w, j->c->numbers, sizeof j->c->numbers);
}

/* On rank 0. */
static bm_status begin_files(job *j, const char *const *paths)
{
    while (paths[j->n_paths] != NULL)
        j->n_paths++;
    BM_ASSERT(j->n_paths > 0 && j->n_paths <= BM_CHECKPOINT_PATHS);
    for (int i = 0; i < j->n_paths; i++) {
        bm_status status = bm_st_create(&j->w[i], paths[i], true);

        if (status == BM_OK)
            status = begin_file(j, j->w[i]);
        BM_TRY(settle(j, i, status));
    }
    return BM_OK;
}

/* On rank 0: the next n floats, to all files. */
static bm_status write_floats(job *j, const float *x, size_t n)
{
    for (int i = 0; i < j->n_paths; i++)
        if (j->w[i] != NULL)
            BM_TRY(settle(j, i, bm_st_write(j->w[i], x, n * sizeof *x)));
    return BM_OK;
}

/* On rank 0. */
static bm_status commit_files(job *j)
{
    j->saved.which = -1;
    for (int i = 0; i < j->n_paths; i++) {
        bm_st_commitment done = {0};

        if (j->w[i] == NULL)
            continue;
        BM_TRY(settle(j, i, bm_st_commit(j->w[i], &done)));
        if (j->w[i] != NULL && j->saved.which < 0)
            j->saved.which = i;
        j->saved.bytes = done.bytes > 0 ? done.bytes : j->saved.bytes;
        j->saved.verify_s += done.verify_s;
    }
    return BM_OK;
}

/* *x: n elements of this rank's slice, from element `at` of the state on, on
 * the host. *x is set even if it fails: rank 0 expects n floats. */
static bm_status fetch(const job *j, const bm_state_slice *slice, size_t at,
                       size_t n, const float **x)
{
    const bm_state *s = &j->c->states[slice->index];

    *x = s->x + (at - slice->offset);
    if (s->be == NULL)
        return BM_OK;
    bm_get(s->be, j->chunk, *x, n);
    *x = j->chunk;
    return bm_sync(s->be);
}

/* Moves a chunk from the rank that has it to the file. `failed`: rank 0
 * receives it, so that the sender does not block, but does not write it. */
static bm_status move(job *j, const bm_state_slice *slice, size_t at, size_t n,
                      bool failed)
{
    int rank = bm_comm_rank(j->comm);
    const float *x = j->chunk;
    bm_status status = BM_OK;

    if (slice->rank == rank)
        status = fetch(j, slice, at, n, &x);
    if (slice->rank == rank && rank != 0) {
        bm_comm_send(j->comm, x, n, 0);
        BM_TRY(bm_comm_wait(j->comm));
    } else if (slice->rank != rank && rank == 0) {
        bm_comm_receive(j->comm, j->chunk, n, slice->rank);
        BM_TRY(bm_comm_wait(j->comm));
    }
    if (rank == 0 && status == BM_OK && !failed)
        status = write_floats(j, x, n);
    return status;
}

/* Writes a state; each chunk comes from the lowest rank that has it. */
static bm_status save_vector(job *j, size_t first)
{
    bm_status status = BM_OK;
    size_t n = 0;

    for (size_t at = 0; at < j->slices.rows[first].whole; at += n) {
        const bm_state_slice *slice = bm_state_slices_at(&j->slices, first, at);
        size_t left = slice->offset + slice->count - at;
        bm_status now = BM_OK;

        n = left < CHUNK ? left : CHUNK;
        now = move(j, slice, at, n, status != BM_OK);
        if (status == BM_OK)
            status = now;
    }
    return bm_comm_agree(j->comm, status);
}

bm_status bm_checkpoint_save(const char *const *paths, bm_comm *comm,
                             const bm_checkpoint *c, bm_saved *out)
{
    bool writes = bm_comm_rank(comm) == 0;
    bm_status status = BM_OK;
    job j;

    BM_TRY_DONE(start(&j, comm, c));
    BM_TRY_DONE(bm_comm_agree(comm, writes ? begin_files(&j, paths) : BM_OK));
    for (size_t i = 0; i < j.slices.n; i = bm_state_slices_end(&j.slices, i))
        BM_TRY_DONE(save_vector(&j, i));
    BM_TRY_DONE(bm_comm_agree(comm, writes ? commit_files(&j) : BM_OK));
    if (writes && out != NULL)
        *out = j.saved;
done:
    end(&j);
    return status;
}

/* ---- loading ------------------------------------------------------------- */

/* The fields of a checkpoint besides its states. */
typedef struct rest {
    bm_position position;
    double numbers[BM_CHECKPOINT_NUMBERS];
    uint64_t manifest;
} rest;

/* Counts are exact in doubles up to here, and may be increased. */
static const double MOST = 9007199254740992.;

/* Reads a tensor that must have this type and `count` elements. */
static bm_status read_small(const job *j, const char *name, bm_dtype dtype,
                            size_t count, void *data)
{
    const bm_st_tensor *t = bm_st_find(j->f, name);

    if (t == NULL || t->dtype != dtype || t->rank != 1 || t->count != count)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: tensor '%s' is missing, or has another type or size", j->path,
            name);
    return bm_st_read(j->f, t, 0, count, data);
}

bm_status bm_checkpoint_numbers(bm_st_file *f, const char *path,
                                double numbers[BM_CHECKPOINT_NUMBERS])
{
    const job j = {.f = f, .path = path};

    BM_TRY(read_small(&j, "numbers", BM_F64, BM_CHECKPOINT_NUMBERS, numbers));
    for (int i = 0; i < BM_CHECKPOINT_NUMBERS; i++)
        if (!(fabs(numbers[i]) <= MOST))
            return BM_FAIL(BM_ERR_FORMAT, "%s: number %d is out of range", path,
                           i);
    return BM_OK;
}

static bm_status read_rest(const job *j, rest *out)
{
    const char *format = bm_st_text(j->f, "format");
    const char *manifest = bm_st_text(j->f, "manifest");
    int64_t at[2] = {0};
    char *stop = NULL;

    if (format == NULL || strcmp(format, BM_CHECKPOINT_FORMAT) != 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: the format is '%.40s', not '%s'",
                       j->path, format != NULL ? format : "",
                       BM_CHECKPOINT_FORMAT);
    if (manifest == NULL || strlen(manifest) != 16 ||
        strspn(manifest, "0123456789abcdef") != 16)
        return BM_FAIL(BM_ERR_FORMAT, "%s: the hash of the data is missing",
                       j->path);
    out->manifest = strtoull(manifest, &stop, 16);
    BM_TRY(read_small(j, "position", BM_I64, 2, at));
    for (int i = 0; i < 2; i++)
        if (at[i] < 0 || (double)at[i] > MOST)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: the position %lld is not a count", j->path,
                           (long long)at[i]);
    out->position = (bm_position){at[0], at[1]};
    return bm_checkpoint_numbers(j->f, j->path, out->numbers);
}

/* Every state that a rank asks for is in the file, with the right length. */
static bm_status check_vectors(const job *j)
{
    for (size_t i = 0; i < j->slices.n;
         i = bm_state_slices_end(&j->slices, i)) {
        const bm_state_slice *slice = &j->slices.rows[i];
        bm_st_tensor t = tensor_of(slice->name, slice->whole);
        const bm_st_tensor *found = bm_st_find(j->f, t.name);

        if (is_model(slice->name)) {
            BM_TRY(bm_model_match(j->f, j->path, j->c->params, "model."));
            continue;
        }
        if (found == NULL)
            return BM_FAIL(
                BM_ERR_FORMAT,
                "%s: %s is missing: the checkpoint was saved with other "
                "settings",
                j->path, t.name);
        if (found->dtype != BM_F32 || found->rank != 1 ||
            found->dim[0] != t.dim[0])
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s has %" PRIu64 " elements, not %" PRIu64,
                           j->path, t.name, found->count, t.dim[0]);
    }
    return BM_OK;
}

static bool is_asked_for(const job *j, const char *name)
{
    if (strcmp(name, "position") == 0 || strcmp(name, "numbers") == 0)
        return true;
    for (size_t i = 0; i < j->slices.n;
         i = bm_state_slices_end(&j->slices, i)) {
        const char *asked = j->slices.rows[i].name;

        if (is_model(asked) ? bm_model_has(j->f, j->c->params, "model.", name)
                            : strcmp(tensor_of(asked, 1).name, name) == 0)
            return true;
    }
    return false;
}

static bm_status read_slice(const job *j, const bm_state *s, size_t at,
                            size_t n, float *x)
{
    if (is_model(s->name))
        return bm_model_read(j->f, j->c->params, "model.", at, n, x);
    return bm_st_read(j->f, bm_st_find(j->f, tensor_of(s->name, 1).name), at, n,
                      x);
}

/* Reads a slice, a chunk at a time, and copies it to its state if `filling`. */
static bm_status pass_through(const job *j, const bm_state *s, bool filling)
{
    size_t n = 0;

    for (size_t at = 0; at < s->count; at += n) {
        n = s->count - at < CHUNK ? s->count - at : CHUNK;
        BM_TRY(read_slice(j, s, s->offset + at, n, j->chunk));
        if (filling && s->be == NULL) {
            memcpy(s->x + at, j->chunk, n * sizeof *s->x);
        } else if (filling) {
            bm_put(s->be, s->x + at, j->chunk, n);
            BM_TRY(bm_sync(s->be));
        }
    }
    return BM_OK;
}

static bm_status pass_all(const job *j, bool filling)
{
    for (size_t i = 0; i < j->c->n_states; i++)
        BM_TRY(pass_through(j, &j->c->states[i], filling));
    return BM_OK;
}

bm_status bm_checkpoint_take(bm_st_file *f, const bm_state *s, size_t n,
                             bool *taken)
{
    bm_st_tensor t = tensor_of(s->name, s->whole > 0 ? s->whole : n);
    const bm_st_tensor *found = bm_st_find(f, t.name);
    job j = {.f = f};
    bm_status status = BM_OK;

    BM_ASSERT(!is_model(s->name));
    *taken = found != NULL && found->dtype == BM_F32 && found->rank == 1 &&
             found->dim[0] == t.dim[0];
    if (!*taken)
        return BM_OK;
    j.chunk = malloc(CHUNK * sizeof *j.chunk);
    if (j.chunk == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a checkpoint");
    status = pass_through(&j, s, true);
    free(j.chunk);
    return status;
}

/* Opens the file and checks all of it. */
static bm_status verify(job *j, rest *out)
{
    BM_TRY(bm_st_open(&j->f, j->path, true));
    BM_TRY(read_rest(j, out));
    BM_TRY(check_vectors(j));
    for (size_t i = 0; i < bm_st_count(j->f); i++)
        if (!is_asked_for(j, bm_st_at(j->f, i)->name))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s is not used: the checkpoint was saved with "
                           "other settings",
                           j->path, bm_st_at(j->f, i)->name);
    return pass_all(j, false);
}

bm_status bm_checkpoint_load(const char *path, bm_comm *comm, bm_checkpoint *c)
{
    bm_status status = BM_OK;
    rest found = {0};
    job j;

    BM_TRY_DONE(start(&j, comm, c));
    j.path = path;
    BM_TRY_DONE(bm_comm_agree(comm, verify(&j, &found)));
    BM_TRY_DONE(bm_comm_agree(comm, pass_all(&j, true)));
    c->position = found.position;
    memcpy(c->numbers, found.numbers, sizeof c->numbers);
    c->manifest = found.manifest;
done:
    end(&j);
    return status;
}
