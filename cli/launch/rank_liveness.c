#define _GNU_SOURCE /* F_OFD_SETLK */
#include "cli/launch/rank_liveness.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char variable[] = "BMUF_ATTENDANCE";

static char signed_as[1100]; /* "": not at all */

void bm_rank_liveness_offer(const char *directory)
{
    setenv(variable, directory, 1);
}

/* Whether nobody else holds it. The descriptor that stays open is the lock. */
static bool lock(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return file >= 0 && fcntl(file, F_OFD_SETLK, &whole) == 0;
}

void bm_rank_liveness_sign(void)
{
    const char *directory = getenv(variable);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (directory == NULL || rank == NULL)
        return;
    snprintf(signed_as, sizeof signed_as, "%s/rank-%s", directory, rank);
    if (!lock(open(signed_as, O_RDWR | O_CREAT | O_CLOEXEC, 0600)))
        signed_as[0] = '\0'; /* on another host, the folder is not there */
}

void bm_rank_liveness_leave(void)
{
    if (signed_as[0] != '\0')
        unlink(signed_as);
}

int bm_rank_liveness_missing(const char *directory, long ranks)
{
    int missing = -1;

    for (int r = 0; r < ranks && missing < 0; r++) {
        char path[1100];
        int file;

        snprintf(path, sizeof path, "%s/rank-%d", directory, r);
        file = open(path, O_RDWR | O_CLOEXEC);
        if (lock(file))
            missing = r;
        if (file >= 0)
            close(file);
    }
    return missing;
}
