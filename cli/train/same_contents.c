#define _GNU_SOURCE /* gethostname */
#include "cli/train/same_contents.h"

#include "comm/agreed_alloc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 64, LISTED = 8 };

/* What a rank has read, and where. */
typedef struct reading {
    char host[HOST], digest[64], path[2100];
} reading;

static reading reading_of(const char *path, const char *digest)
{
    reading r = {0};

    (void)gethostname(r.host, sizeof r.host - 1);
    snprintf(r.digest, sizeof r.digest, "%s", digest);
    snprintf(r.path, sizeof r.path, "%s", path);
    return r;
}

/* Collective. out [room] <- "rank 1 (host b), rank 5 (host c) and 2 more": the
 * ranks that differ. */
static bm_status list_ranks(bm_comm *comm, const int *differs, const char *own,
                            char *out, size_t room)
{
    int listed = 0, more = 0;
    size_t at = 0;

    out[0] = '\0';
    for (int r = 0; r < bm_comm_size(comm); r++) {
        char host[HOST] = "";

        more += differs[r] != 0 && listed == LISTED;
        if (differs[r] == 0 || listed == LISTED)
            continue;
        memcpy(host, own, sizeof host);
        BM_TRY(bm_comm_broadcast_bytes(comm, host, sizeof host, r));
        snprintf(out + at, room - at, "%srank %d (host %s)",
                 listed++ > 0 ? ", " : "", r, host);
        at = strlen(out);
    }
    if (more > 0)
        snprintf(out + at, room - at, " and %d more", more);
    return BM_OK;
}

/* text [room] <- "data/train with digest 12ab", or "nothing". */
static const char *describe(const reading *r, char *text, size_t room)
{
    snprintf(text, room, "%s%s%s", r->digest[0] != '\0' ? r->path : "nothing",
             r->digest[0] != '\0' ? " with digest " : "", r->digest);
    return text;
}

/* On a rank that differs. */
static bm_status refuse(const char *key, const reading *own,
                        const reading *first, const char *ranks)
{
    char here[sizeof(reading)], there[sizeof(reading)];

    return BM_FAIL(BM_ERR_CONFIG,
                   "%s: %s read %s, but rank 0 (host %s) read %s; give all "
                   "ranks the same files, on a shared disk or as equal copies "
                   "on each host, and run the same command again",
                   key, ranks, describe(own, here, sizeof here), first->host,
                   describe(first, there, sizeof there));
}

bm_status bm_same_contents(bm_comm *comm, const char *key, const char *path,
                           const char *digest)
{
    const reading own = reading_of(path, digest);
    reading first = own;
    char ranks[LISTED * (HOST + 32)];
    size_t size = (size_t)bm_comm_size(comm);
    void *memory = NULL;
    int *differs = NULL, any = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, size * sizeof *differs, &memory));
    differs = memory;
    BM_TRY_DONE(bm_comm_broadcast_bytes(comm, &first, sizeof first, 0));
    differs[bm_comm_rank(comm)] = strcmp(own.digest, first.digest) != 0;
    BM_TRY_DONE(bm_comm_max(comm, differs, size));
    for (size_t r = 0; r < size; r++)
        any += differs[r];
    if (any == 0)
        goto done;
    BM_TRY_DONE(list_ranks(comm, differs, own.host, ranks, sizeof ranks));
    if (differs[bm_comm_rank(comm)] != 0)
        status = refuse(key, &own, &first, ranks);
    status = bm_comm_agree(comm, status);
done:
    free(differs);
    return status;
}
