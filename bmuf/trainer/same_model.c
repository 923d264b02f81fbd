#include "bmuf/trainer/same_model.h"

#include "comm/agreed_alloc.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Of params->w, which may be on a device. */
static bm_status find_digest(const bm_params *p, uint64_t *out)
{
    enum { PIECE = 1 << 18 };
    float *piece = malloc(PIECE * sizeof *piece);
    uint64_t digest = 0;
    bm_status status = BM_OK;

    if (piece == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare models");
    for (size_t at = 0; at < p->n && status == BM_OK; at += PIECE) {
        size_t n = p->n - at < PIECE ? p->n - at : PIECE;

        bm_get(p->be, piece, p->w + at, n);
        status = bm_sync(p->be);
        if (status == BM_OK)
            digest = XXH3_64bits_withSeed(piece, n * sizeof *piece, digest);
    }
    free(piece);
    *out = digest;
    return status;
}

/* How many ranks have the digest of rank r. */
static int count_like(const int64_t *digest, int ranks, int r)
{
    int n = 0;

    for (int k = 0; k < ranks; k++)
        n += digest[k] == digest[r];
    return n;
}

/* The first of the ranks with the digest that most have. */
static int find_usual(const int64_t *digest, int ranks)
{
    int usual = 0;

    for (int r = 1; r < ranks; r++)
        if (count_like(digest, ranks, r) > count_like(digest, ranks, usual))
            usual = r;
    return usual;
}

/* Collective. out [room] <- "rank 1 on host b, rank 3 on host d and 2 more": all
 * that differ from rank `usual`. */
static bm_status list_others(bm_comm *comm, const int64_t *digest, int usual,
                             char *out, size_t room)
{
    enum { LISTED = 4 };
    int found = 0, ranks = bm_comm_size(comm);

    out[0] = '\0';
    for (int r = 0; r < ranks; r++) {
        char name[BM_RANK_NAME];

        if (digest[r] == digest[usual] || ++found > LISTED)
            continue;
        BM_TRY(bm_comm_name_rank(comm, r, name));
        snprintf(out + strlen(out), room - strlen(out), "%s%s",
                 found > 1 ? ", " : "", name);
    }
    if (found > LISTED)
        snprintf(out + strlen(out), room - strlen(out), " and %d more",
                 found - LISTED);
    return BM_OK;
}

/* Collective. Fails, on all ranks. */
static bm_status report(bm_comm *comm, const int64_t *digest, bm_position at)
{
    int ranks = bm_comm_size(comm), usual = find_usual(digest, ranks);
    int n = count_like(digest, ranks, usual);
    char first[BM_RANK_NAME], others[5 * BM_RANK_NAME];

    BM_TRY(bm_comm_name_rank(comm, usual, first));
    BM_TRY(list_others(comm, digest, usual, others, sizeof others));
    return bm_comm_agree(
        comm,
        BM_FAIL(
            BM_ERR_DEVICE,
            "after block %lld of epoch %lld the model of %s has other bits "
            "than that of %s, which %d of %d ranks have, though all make the "
            "same updates. Compare bmuf --version on these hosts: builds, "
            "libraries and instruction sets must be the same (BMUF_ISA, "
            "DNNL_MAX_CPU_ISA and OPENBLAS_CORETYPE choose the last). If they "
            "are, suspect processor or memory of %s, and leave that host out. "
            "No checkpoint has this model: run the same command again to "
            "resume from the last one",
            (long long)at.block, (long long)at.epoch + 1, others, first, n,
            ranks, 2 * n > ranks ? "the rank that differs" : "either"));
}

bm_status bm_same_model(bm_comm *comm, const bm_params *params, bm_position at)
{
    int ranks = bm_comm_size(comm);
    uint64_t own = 0;
    void *memory = NULL;
    int64_t *digest = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_comm_agree(comm, find_digest(params, &own)));
    BM_TRY(bm_agreed_alloc(comm, (size_t)ranks * sizeof *digest, &memory));
    digest = memory;
    digest[bm_comm_rank(comm)] = (int64_t)own;
    status = bm_comm_sum_ints(comm, digest, (size_t)ranks);
    if (status == BM_OK && count_like(digest, ranks, 0) < ranks)
        status = report(comm, digest, at);
    free(digest);
    return status;
}
