#define _GNU_SOURCE /* F_OFD_SETLK */
#include "cli/launch/rank_liveness.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char variable[] = "BMUF_RANK_LOCKS";

static char own_file[1100]; /* "": none */

void bm_rank_liveness_export(const char *directory)
{
    setenv(variable, directory, 1);
}

/* False if another process holds the lock. The lock lasts until the descriptor
 * is closed. */
static bool lock(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return file >= 0 && fcntl(file, F_OFD_SETLK, &whole) == 0;
}

void bm_rank_liveness_begin(void)
{
    const char *directory = getenv(variable);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (directory == NULL || rank == NULL)
        return;
    snprintf(own_file, sizeof own_file, "%s/rank-%s", directory, rank);
    if (!lock(open(own_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600)))
        own_file[0] = '\0'; /* the directory is on another host */
}

void bm_rank_liveness_end(void)
{
    if (own_file[0] != '\0')
        unlink(own_file);
}

int bm_rank_liveness_dead(const char *directory, long ranks)
{
    int dead = -1;

    for (int r = 0; r < ranks && dead < 0; r++) {
        char path[1100];
        int file;

        snprintf(path, sizeof path, "%s/rank-%d", directory, r);
        file = open(path, O_RDWR | O_CLOEXEC);
        if (lock(file))
            dead = r;
        if (file >= 0)
            close(file);
    }
    return dead;
}
