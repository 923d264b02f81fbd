#include "io/import/same_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct host_name {
    char text[64];
} host_name;

static host_name this_host(void)
{
    host_name name = {""};

    (void)gethostname(name.text, sizeof name.text - 1);
    return name;
}

static uint64_t hash(const bm_manifest *m)
{
    XXH64_hash_t h = 0;

    for (size_t k = 0; k < bm_manifest_size(m); k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        const char *const texts[] = {row.id, row.path, row.text, row.speaker,
                                     row.shape};
        double times[] = {row.start, row.duration, row.speed,
                          (double)row.channel};

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            h = XXH3_64bits_withSeed(texts[i], strlen(texts[i]), h + i);
        h = XXH3_64bits_withSeed(times, sizeof times, h);
    }
    return h;
}

static bm_status compare_manifests(bm_comm *comm, const bm_manifest *m)
{
    uint64_t own = hash(m), first = own;
    bm_status status = BM_OK;

    BM_TRY(bm_comm_broadcast_bytes(comm, &first, sizeof first, 0));
    if (own != first)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s is another manifest on host %s than rank 0 has; "
                         "all hosts must see the same files",
                         bm_manifest_path(m), this_host().text);
    return bm_comm_agree(comm, status);
}

/* seen[k] <- 1 if this rank can open the file of row k, which is that of a
 * recording; rows that are missing everywhere are left out later. */
static void look(const bm_manifest *m, int64_t *seen)
{
    for (size_t k = 0; k < bm_manifest_size(m); k++)
        seen[k] = bm_manifest_at(m, k).copy > 0 ||
                  bm_manifest_why_missing(m, k)[0] == '\0';
}

/* The fault of this rank, if it lacks what others see. */
static bm_status find_fault(const bm_manifest *m, const int64_t *own,
                            const int64_t *all)
{
    for (size_t k = 0; k < bm_manifest_size(m); k++)
        if (own[k] == 0 && all[k] > 0)
            return BM_FAIL(BM_ERR_MISSING,
                           "%s:%zu: host %s cannot open %s (%s), which others "
                           "can; all hosts must see the same files by the same "
                           "paths",
                           bm_manifest_path(m), bm_manifest_at(m, k).line,
                           this_host().text, bm_manifest_at(m, k).path,
                           bm_manifest_why_missing(m, k));
    return BM_OK;
}

bm_status bm_same_files(bm_comm *comm, const bm_manifest *m)
{
    size_t n = bm_manifest_size(m);
    int64_t *own = calloc(2 * n, sizeof *own), *all = NULL;
    bm_status status = BM_OK;

    if (own == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu rows", n);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(compare_manifests(comm, m)); /* n is the same then */
    BM_ASSERT(own != NULL);
    all = own + n;
    look(m, own);
    memcpy(all, own, n * sizeof *all);
    BM_TRY_DONE(bm_comm_sum_ints(comm, all, n));
    status = bm_comm_agree(comm, find_fault(m, own, all));
done:
    free(own);
    return status;
}
