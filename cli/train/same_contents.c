#define _GNU_SOURCE /* gethostname */
#include "cli/train/same_contents.h"

#include "comm/agreed_alloc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 64, LISTED = 4 };

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

/* Collective. out [room] <- "; rank 5 (host c), rank 6 (host c) and 2 more differ
 * from rank 0, too": all that differ but the first; "" if there are none. */
static bm_status list_others(bm_comm *comm, const int *differs, const char *own,
                             char *out, size_t room)
{
    int found = 0;
    size_t at = 0;

    out[0] = '\0';
    for (int r = 0; r < bm_comm_size(comm); r++) {
        char host[HOST];

        found += differs[r];
        if (differs[r] == 0 || found < 2 || found > 1 + LISTED)
            continue;
        memcpy(host, own, sizeof host);
        BM_TRY(bm_comm_broadcast_bytes(comm, host, sizeof host, r));
        snprintf(out + at, room - at, "%s rank %d (host %s)",
                 found == 2 ? ";" : ",", r, host);
        at = strlen(out);
    }
    if (found > 1 + LISTED)
        snprintf(out + at, room - at, " and %d more", found - 1 - LISTED);
    if (found > 1)
        snprintf(out + strlen(out), room - strlen(out),
                 " differ%s from rank 0, too", found == 2 ? "s" : "");
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
static bm_status refuse(const char *key, int rank, const reading *own,
                        const reading *first, const char *others)
{
    char here[sizeof(reading)], there[sizeof(reading)];

    return BM_FAIL(BM_ERR_CONFIG,
                   "%s: rank %d (host %s) read %s, but rank 0 (host %s) read "
                   "%s%s; give all ranks the same files, on a shared disk or "
                   "as equal copies on each host, and run the same command "
                   "again",
                   key, rank, own->host, describe(own, here, sizeof here),
                   first->host, describe(first, there, sizeof there), others);
}

bm_status bm_same_contents(bm_comm *comm, const char *key, const char *path,
                           const char *digest)
{
    const reading own = reading_of(path, digest);
    reading first = own;
    char others[(LISTED + 1) * (HOST + 32)];
    size_t size = (size_t)bm_comm_size(comm);
    void *memory = NULL;
    int *differs = NULL, rank = bm_comm_rank(comm), any = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, size * sizeof *differs, &memory));
    differs = memory;
    BM_TRY_DONE(bm_comm_broadcast_bytes(comm, &first, sizeof first, 0));
    differs[rank] = strcmp(own.digest, first.digest) != 0;
    BM_TRY_DONE(bm_comm_max(comm, differs, size));
    for (size_t r = 0; r < size; r++)
        any += differs[r];
    if (any == 0)
        goto done;
    BM_TRY_DONE(list_others(comm, differs, own.host, others, sizeof others));
    if (differs[rank] != 0)
        status = refuse(key, rank, &own, &first, others);
    status = bm_comm_agree(comm, status);
done:
    free(differs);
    return status;
}
