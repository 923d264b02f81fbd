#include "cli/hosts/slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- "n[001-003,7],gpu-[1-2]" ------------------------------------------- */

enum { DIGITS = 9, BRACKETS = 4 }; /* most of a number; most in a name */

/* Reads digits; false: none, or too many. */
static bool read_number(const char **at, long *x, int *width)
{
    *x = *width = 0;
    while (isdigit((unsigned char)**at) && *width <= DIGITS) {
        *x = 10 * *x + **at - '0';
        ++*at;
        ++*width;
    }
    return *width > 0 && *width <= DIGITS;
}

/* The ranges of a bracket, one after another: *from to *to, padded to `width`
 * digits; *at is after '[' at first. False: malformed. */
typedef struct range {
    long from, to;
    int width;
} range;

static bool read_range(const char **at, range *r)
{
    int width = 0;

    if (!read_number(at, &r->from, &r->width))
        return false;
    r->to = r->from;
    if (**at == '-') {
        ++*at;
        if (!read_number(at, &r->to, &width))
            return false;
    }
    if (r->to < r->from || r->to - r->from >= BM_MOST_HOSTS)
        return false;
    if (**at == ',')
        ++*at;
    else if (**at != ']')
        return false;
    return true;
}

/* A name with brackets, and the number that each of them has now. */
typedef struct pattern {
    const char *text;
    size_t n;
    int brackets;
    long count[BRACKETS]; /* numbers that it stands for */
    long now[BRACKETS];   /* which of them, from 0 */
} pattern;

/* The k-th number of a bracket, as text; k < 0: only counts them. Returns how
 * many there are, -1: malformed. */
static long number_of(const char **at, long k, char *out, size_t room)
{
    long n = 0;
    range r;

    while (**at != ']') {
        if (!read_range(at, &r) || n > BM_MOST_HOSTS)
            return -1;
        if (k >= n && k <= n + r.to - r.from)
            snprintf(out, room, "%0*ld", r.width, r.from + k - n);
        n += r.to - r.from + 1;
    }
    ++*at;
    return n > 0 && (*at)[-2] != ',' ? n : -1;
}

/* Counts the names that a pattern stands for; -1: malformed. */
static long read_pattern(pattern *p)
{
    long all = 1;

    for (const char *at = p->text; at < p->text + p->n;) {
        if (*at == ']' || p->brackets == BRACKETS)
            return -1;
        at += strcspn(at, "[]");
        if (at >= p->text + p->n)
            break;
        if (*at++ == ']')
            return -1;
        p->count[p->brackets] = number_of(&at, -1, NULL, 0);
        if (p->count[p->brackets] < 0)
            return -1;
        all *= p->count[p->brackets++];
        if (all > BM_MOST_HOSTS)
            return -1;
    }
    return all;
}

static void write_name(const pattern *p, char *out, size_t room)
{
    size_t n = 0;
    int bracket = 0;

    for (const char *at = p->text; at < p->text + p->n && n + 1 < room;) {
        char number[DIGITS + 2] = "";

        if (*at != '[') {
            out[n++] = *at++;
            continue;
        }
        at++;
        (void)number_of(&at, p->now[bracket++], number, sizeof number);
        n += (size_t)snprintf(out + n, room - n, "%s", number);
    }
    out[n < room ? n : room - 1] = '\0';
}

/* The last bracket turns fastest. */
static void advance(pattern *p)
{
    for (int k = p->brackets; k-- > 0;) {
        if (++p->now[k] < p->count[k])
            return;
        p->now[k] = 0;
    }
}

static bm_status add_pattern(bm_hosts *h, const char *text, size_t n)
{
    pattern p = {.text = text, .n = n};
    long all = n < BM_HOSTFILE_BYTES ? read_pattern(&p) : -1;

    for (long k = 0; k < all; k++) {
        char name[BM_HOST_NAME + 1];

        write_name(&p, name, sizeof name);
        BM_TRY(bm_hosts_add(h, name, strlen(name), 0, 0));
        advance(&p);
    }
    return all >= 0
               ? BM_OK
               : BM_FAIL(BM_ERR_CONFIG,
                         "'%.*s' is not a list of nodes such as n[01-03,7]",
                         n < 80 ? (int)n : 80, text);
}

/* The length of a name with its brackets. */
static size_t pattern_length(const char *text)
{
    size_t n = 0;
    bool inside = false;

    for (; text[n] != '\0' && (inside || text[n] != ','); n++)
        inside = text[n] == '[' || (inside && text[n] != ']');
    return n;
}

bm_status bm_slurm_nodes(bm_hosts *h, const char *text)
{
    for (;; text++) {
        size_t n = pattern_length(text);

        if (add_pattern(h, text, n) != BM_OK)
            return BM_FAIL(BM_ERR_CONFIG, "SLURM_JOB_NODELIST: %s",
                           bm_last_message());
        text += n;
        if (*text == '\0')
            return BM_OK;
    }
}

/* ---- "4(x2),3" ---------------------------------------------------------- */

/* Reads "4" or "4(x2)" and the comma after it. */
static bool read_count(const char **at, long *slots, long *times)
{
    int width = 0;

    *times = 1;
    if (!read_number(at, slots, &width))
        return false;
    if (strncmp(*at, "(x", 2) == 0) {
        *at += 2;
        if (!read_number(at, times, &width) || **at != ')')
            return false;
        ++*at;
    }
    if (**at == ',' && (*at)[1] != '\0')
        ++*at;
    else if (**at != '\0')
        return false;
    return *times >= 1 && *slots <= BM_MOST_SLOTS;
}

/* Reads numbers for h [n], in order; false: not as many. */
static bool read_counts(const bm_hosts *h, const char *text,
                        void (*take)(bm_host *, long))
{
    const char *at = text;
    size_t n = 0;
    long sum = 0;
    bool fits = true;

    while (fits && *at != '\0') {
        long count = 0, times = 0;

        fits = read_count(&at, &count, &times) && (size_t)times <= h->n - n &&
               sum + times * count <= BM_MOST_SLOTS;
        for (; fits && times > 0; times--) {
            take(&h->list[n++], count);
            sum += count;
        }
    }
    return fits && n == h->n;
}

static void take_slots(bm_host *host, long tasks)
{
    host->slots = host->most = tasks;
}

static void take_cpus(bm_host *host, long cpus)
{
    if (cpus > host->most)
        host->most = cpus;
}

bm_status bm_slurm_counts(bm_hosts *h, const char *tasks, const char *cpus)
{
    if (!read_counts(h, tasks, take_slots))
        return BM_FAIL(BM_ERR_CONFIG,
                       "SLURM_TASKS_PER_NODE=%.80s does not fit the %zu nodes "
                       "of SLURM_JOB_NODELIST; an example: 4(x2),3",
                       tasks, h->n);
    if (cpus != NULL)
        (void)read_counts(h, cpus, take_cpus);
    return BM_OK;
}

/* ---- the environment ---------------------------------------------------- */

/* The first of the two variables that is set; NULL: none. */
static const char *either(const char *name, const char *old)
{
    const char *text = getenv(name);

    return text != NULL ? text : getenv(old);
}

static long number(const char *name, long fallback)
{
    const char *text = getenv(name);
    long x = 0;
    int width = 0;

    if (text == NULL || !read_number(&text, &x, &width) || *text != '\0')
        return fallback;
    return x;
}

bool bm_slurm_task(void)
{
    /* The steps of a batch script and of salloc have larger numbers, or none. */
    return number("SLURM_STEP_ID", -1) >= 0 && getenv("SLURM_PROCID") != NULL;
}

bool bm_slurm_job(void)
{
    return either("SLURM_JOB_ID", "SLURM_JOBID") != NULL;
}

bool bm_slurm_allocation(void)
{
    return bm_slurm_job() &&
           either("SLURM_JOB_NODELIST", "SLURM_NODELIST") != NULL &&
           !bm_slurm_task();
}

long bm_slurm_step_tasks(void)
{
    return number("SLURM_STEP_NUM_TASKS", number("SLURM_NTASKS", 1));
}

bm_status bm_slurm_hosts(bm_hosts *h, long *ranks)
{
    const char *nodes = either("SLURM_JOB_NODELIST", "SLURM_NODELIST");
    const char *tasks = getenv("SLURM_TASKS_PER_NODE");

    BM_ASSERT(nodes != NULL);
    BM_TRY(bm_slurm_nodes(h, nodes));
    BM_TRY(bm_slurm_counts(h, tasks != NULL ? tasks : "none",
                           getenv("SLURM_JOB_CPUS_PER_NODE")));
    *ranks = number("SLURM_NTASKS", bm_hosts_slots(h));
    return BM_OK;
}
