#include "cli/launch/mpirun_output.h"

#include <string.h>

enum { DASHES = 60 }; /* mpirun's lines have 74 */

static const char forwards[] = "mpirun: Forwarding signal";

static void release(bm_mpirun_output *r, FILE *to)
{
    fwrite(r->held, 1, r->n_held, to);
    r->n_held = r->line = 0;
}

/* Whether a line that begins with `held` may be one of mpirun's own. */
static bool may_be_mpirun(const bm_mpirun_output *r)
{
    size_t n = r->n_held < sizeof forwards ? r->n_held : sizeof forwards - 1;

    return memcmp(r->held, forwards, n) == 0 ||
           (r->held[0] == '-' && r->held[r->n_held - 1] == '-');
}

static bool forwards_a_signal(const bm_mpirun_output *r)
{
    return r->n_held >= sizeof forwards &&
           memcmp(r->held, forwards, sizeof forwards - 1) == 0;
}

/* Whether the last line in `held` is a line of dashes. */
static bool ends_dashes(const bm_mpirun_output *r)
{
    size_t n = r->n_held - r->line - 1;

    if (n < DASHES)
        return false;
    for (size_t i = 0; i < n; i++)
        if (r->held[r->line + i] != '-')
            return false;
    return true;
}

/* Reads "mpirun noticed that process rank 1 with PID 4711 on node x exited on
 * signal 9 (Killed)." */
static bool reads_death(bm_mpirun_output *r)
{
    const char *who = strstr(r->held, "process rank ");
    const char *how = strstr(r->held, "exited on signal ");

    return who != NULL && how != NULL &&
           sscanf(who, "process rank %ld with PID %*s on node %127s", &r->rank,
                  r->host) == 2 &&
           sscanf(how, "exited on signal %d", &r->signal) == 1;
}

/* Notices about an exit that the rank itself has reported. */
static bool repeats_a_rank(const bm_mpirun_output *r)
{
    return strstr(r->held, "non-zero exit code") != NULL ||
           strstr(r->held, "exited with non-zero status") != NULL ||
           strstr(r->held, "MPI_ABORT was invoked") != NULL;
}

static void end_notice(bm_mpirun_output *r, FILE *to)
{
    r->held[r->n_held] = '\0';
    if (reads_death(r) || repeats_a_rank(r))
        r->n_held = r->line = 0;
    release(r, to);
    r->in = BM_MPIRUN_OUTPUT_START;
}

/* At the end of a line. */
static void end_line(bm_mpirun_output *r, FILE *to)
{
    bool dashes = ends_dashes(r);

    r->line = r->n_held;
    if (r->in == BM_MPIRUN_OUTPUT_NOTICE && dashes) {
        end_notice(r, to);
    } else if (dashes) {
        r->in = BM_MPIRUN_OUTPUT_NOTICE;
    } else if (r->in == BM_MPIRUN_OUTPUT_START) {
        if (forwards_a_signal(r))
            r->n_held = 0;
        release(r, to);
    }
}

static void hold(bm_mpirun_output *r, char c, FILE *to)
{
    r->held[r->n_held++] = c;
    if (c == '\n') {
        end_line(r, to);
    } else if (r->in == BM_MPIRUN_OUTPUT_START && !may_be_mpirun(r)) {
        release(r, to);
        if (c != '\r')
            r->in = BM_MPIRUN_OUTPUT_LINE;
    }
    if (r->n_held == sizeof r->held - 1) { /* longer than any notice */
        release(r, to);
        r->in = c == '\n' ? BM_MPIRUN_OUTPUT_START : BM_MPIRUN_OUTPUT_LINE;
    }
}

void bm_mpirun_output_pass(bm_mpirun_output *r, const char *text, size_t n,
                           FILE *to)
{
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        if (r->in != BM_MPIRUN_OUTPUT_LINE) {
            hold(r, text[i], to);
            from = i + 1;
        } else if (text[i] == '\n' || text[i] == '\r') {
            fwrite(text + from, 1, i + 1 - from, to);
            from = i + 1;
            r->in = BM_MPIRUN_OUTPUT_START;
        }
    }
    fwrite(text + from, 1, n - from, to);
    fflush(to);
}

void bm_mpirun_output_end(bm_mpirun_output *r, FILE *to)
{
    release(r, to);
    fflush(to);
}
