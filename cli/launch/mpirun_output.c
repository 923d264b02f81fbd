#include "cli/launch/mpirun_output.h"

#include <string.h>

enum { DASHES = 60 }; /* mpirun's lines have 74 */

static const char forwards[] = "mpirun: Forwarding signal";

static void let_go(bm_mpirun_output *r, FILE *to)
{
    fwrite(r->held, 1, r->n_held, to);
    r->n_held = r->line = 0;
}

/* Whether a line that begins so may turn out to be mpirun's own. */
static bool may_be_a_remark(const bm_mpirun_output *r)
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

/* Whether the line that ends here is one of dashes. */
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

/* "mpirun noticed that process rank 1 with PID 4711 on node x exited on signal
 * 9 (Killed)." */
static bool tells_a_death(bm_mpirun_output *r)
{
    const char *who = strstr(r->held, "process rank ");
    const char *how = strstr(r->held, "exited on signal ");

    return who != NULL && how != NULL &&
           sscanf(who, "process rank %ld with PID %*s on node %127s", &r->rank,
                  r->host) == 2 &&
           sscanf(how, "exited on signal %d", &r->signal) == 1;
}

/* Ranks have told why they end. */
static bool is_an_echo(const bm_mpirun_output *r)
{
    return strstr(r->held, "non-zero exit code") != NULL ||
           strstr(r->held, "exited with non-zero status") != NULL ||
           strstr(r->held, "MPI_ABORT was invoked") != NULL;
}

static void end_remark(bm_mpirun_output *r, FILE *to)
{
    r->held[r->n_held] = '\0';
    if (tells_a_death(r) || is_an_echo(r))
        r->n_held = r->line = 0;
    let_go(r, to);
    r->in = BM_MPIRUN_OUTPUT_START;
}

/* A line is whole. */
static void settle(bm_mpirun_output *r, FILE *to)
{
    bool dashes = ends_dashes(r);

    r->line = r->n_held;
    if (r->in == BM_MPIRUN_OUTPUT_REMARK && dashes) {
        end_remark(r, to);
    } else if (dashes) {
        r->in = BM_MPIRUN_OUTPUT_REMARK;
    } else if (r->in == BM_MPIRUN_OUTPUT_START) {
        if (forwards_a_signal(r))
            r->n_held = 0;
        let_go(r, to);
    }
}

static void hold(bm_mpirun_output *r, char c, FILE *to)
{
    r->held[r->n_held++] = c;
    if (c == '\n') {
        settle(r, to);
    } else if (r->in == BM_MPIRUN_OUTPUT_START && !may_be_a_remark(r)) {
        let_go(r, to);
        r->in = BM_MPIRUN_OUTPUT_LINE;
    }
    if (r->n_held == sizeof r->held - 1) { /* longer than any remark */
        let_go(r, to);
        r->in = c == '\n' ? BM_MPIRUN_OUTPUT_START : BM_MPIRUN_OUTPUT_LINE;
    }
}

void bm_mpirun_output_pass(bm_mpirun_output *r, const char *words, size_t n,
                           FILE *to)
{
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        if (r->in != BM_MPIRUN_OUTPUT_LINE) {
            hold(r, words[i], to);
            from = i + 1;
        } else if (words[i] == '\n') {
            fwrite(words + from, 1, i + 1 - from, to);
            from = i + 1;
            r->in = BM_MPIRUN_OUTPUT_START;
        }
    }
    fwrite(words + from, 1, n - from, to);
    fflush(to);
}

void bm_mpirun_output_end(bm_mpirun_output *r, FILE *to)
{
    let_go(r, to);
    fflush(to);
}
