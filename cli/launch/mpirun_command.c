#include "cli/launch/mpirun_command.h"

#include "cli/hosts/remote.h"
#include "cli/hosts/slurm.h"
#include "core/grow.h"
#include "core/text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* A list of words that grows; `failed`: no memory. */
typedef struct words {
    char **list;
    size_t n, room;
    bool failed;
} words;

static void add(words *w, const char *word)
{
    if (bm_grow(&w->list, w->n + 1, &w->room, sizeof *w->list) != BM_OK) {
        w->failed = true;
        return;
    }
    w->list[w->n] = strdup(word);
    w->list[w->n + 1] = NULL;
    if (w->list[w->n] != NULL)
        w->n++;
    else
        w->failed = true;
}

static void add_parameter(words *w, const char *name, const char *value)
{
    add(w, "--mca");
    add(w, name);
    add(w, value);
}

/* Whether the environment sets one of these parameters of Open MPI. */
static bool is_set(const char *const *names)
{
    char name[80];

    for (; *names != NULL; names++) {
        snprintf(name, sizeof name, "OMPI_MCA_%s", *names);
        if (getenv(name) != NULL)
            return true;
    }
    return false;
}

/* Adds the parameters, unless the environment sets one of them. */
static void add_all(words *w, const char *const *names, const char *value)
{
    if (is_set(names))
        return;
    for (; *names != NULL; names++)
        add_parameter(w, *names, value);
}

/* Over TCP Open MPI sends a message longer than these only after a handshake,
 * whose reply queues behind the peer's own data: docs/scaling.md. */
static const char *const limits[] = {"btl_tcp_rndv_eager_limit",
                                     "btl_tcp_eager_limit",
                                     "btl_tcp_max_send_size", NULL};

/* After 6 s without an answer a host is lost, not after minutes. */
static const char *const first_probe[] = {"oob_tcp_keepalive_time", NULL};
static const char *const next_probes[] = {"oob_tcp_keepalive_intvl", NULL};
static const char *const probes[] = {"oob_tcp_keepalive_probes", NULL};

/* By itself mpirun takes all nodes of a job. */
static const char *const allocators[] = {"ras", NULL};

/* Without ssh and rsh, plm rsh refuses to start ranks on this host, too. */
static const char *const starters[] = {"plm", NULL};
static const char *const agents[] = {"plm_rsh_agent", NULL};

/* ---- other hosts -------------------------------------------------------- */

/* Variables that ranks on other hosts get, too; those of Open MPI are passed on
 * by mpirun. */
static bool is_ours(const char *variable)
{
    static const char *const beginnings[] = {
        "BMUF_", "NCCL_", "OPENBLAS_", "ONEDNN_",
        "DNNL_", "HDF5_", "NO_COLOR=", "LD_LIBRARY_PATH="};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void add_variable(words *w, const char *name)
{
    add(w, "-x");
    add(w, name);
}

static void add_environment(words *w)
{
    for (char **v = environ; *v != NULL; v++) {
        char name[256];

        if (!is_ours(*v) || strcspn(*v, "=") >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*v, "="), *v);
        if (strcmp(name, BM_LAUNCH_COMMAND) != 0)
            add_variable(w, name);
    }
}

/* What mpirun needs on several hosts. In an allocation of Slurm srun starts its
 * daemons, elsewhere ssh does. */
static void add_hosts(words *w, const bm_allocation *allocation)
{
    char *hosts = bm_hosts_text(&allocation->hosts);

    add(w, "--host");
    add(w, hosts != NULL ? hosts : "");
    w->failed = w->failed || hosts == NULL;
    free(hosts);
    if (allocation->by != BM_BY_SLURM && bm_remote_arguments()[0] != '\0')
        add_parameter(w, "plm_rsh_args", bm_remote_arguments());
    if (allocation->interface != NULL) {
        add_parameter(w, "btl_tcp_if_include", allocation->interface);
        add_parameter(w, "oob_tcp_if_include", allocation->interface);
    }
    add_all(w, first_probe, "3");
    add_all(w, next_probes, "1");
    add_all(w, probes, "3");
}

/* ---- the whole line ----------------------------------------------------- */

/* file <- the path of a program on PATH. */
static bool find_program(const char *name, char file[4096])
{
    const char *path = getenv("PATH");

    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");

        snprintf(file, 4096, "%.*s/%s", n < 4000 ? (int)n : 0, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/* mpirun by its path if it is not in a usual folder: then it looks for its parts
 * on other hosts in the same folder. */
static void add_mpirun(words *w, const bm_allocation *allocation)
{
    char file[4096];
    bool usual = allocation->hosts.n == 0 || !find_program("mpirun", file) ||
                 strcmp(file, "/usr/bin/mpirun") == 0 ||
                 strcmp(file, "/bin/mpirun") == 0;

    add(w, usual ? "mpirun" : file);
}

static bool has_remote_shell(void)
{
    char file[4096];

    return is_set(agents) || find_program("ssh", file) ||
           find_program("rsh", file);
}

/* The options, without those of these names. */
static void add_options(words *w, const bm_arguments *a, const char *without)
{
    for (int i = 0; i < a->n_given; i++) {
        const bm_flag *f = a->given[i].flag;
        char name[64];

        snprintf(name, sizeof name, "--%s", f->name);
        if (bm_is_word_of(f->name, without))
            continue;
        add(w, name);
        if (f->value != NULL)
            add(w, a->given[i].value);
    }
}

static void add_noun(words *w, const char *noun)
{
    if (noun[0] == '-')
        add(w, "--");
    add(w, noun);
}

/* The verb with its arguments, without those that say where ranks run. */
static void add_arguments(words *w, const bm_arguments *a)
{
    add(w, a->verb->name);
    add_options(w, a, "ranks hosts hostfile interface dry-run");
    for (int i = 0; i < a->n_nouns; i++)
        add_noun(w, a->nouns[i]);
}

/* The same for a run that has its settings, those of --set and --from too. */
static void add_resumption(words *w, const bm_arguments *a, const char *run)
{
    add(w, a->verb->name);
    add_options(w, a, "ranks hosts hostfile interface set from out");
    add(w, "--out");
    add(w, run);
    add_noun(w, run);
}

bm_status bm_mpirun_command(char ***out, const bm_arguments *a,
                            const bm_allocation *allocation,
                            const char *scratch, const char *resumed)
{
    char count[24], program[4096];
    words w = {0};

    snprintf(count, sizeof count, "%ld", allocation->ranks);
    add_mpirun(&w, allocation);
    add(&w, "-np");
    add(&w, count);
    add(&w, "--oversubscribe");
    add(&w, "--bind-to"); /* ranks bind themselves: placement.h */
    add(&w, "none");
    add_parameter(&w, "btl_base_warn_component_unused", "0");
    add_parameter(&w, "odls_base_sigkill_timeout",
                  "0"); /* files are complete */
    if (scratch != NULL &&
        (allocation->by != BM_BY_SLURM || allocation->hosts.n == 0)) {
        add_parameter(&w, "orte_tmpdir_base", scratch);
        add_parameter(&w, "btl_vader_backing_directory", scratch);
    }
    add_all(&w, limits, "8388608");
    if (allocation->hosts.n > 0)
        add_hosts(&w, allocation);
    else if (bm_slurm_job())
        add_all(&w, allocators, "^slurm");
    if (allocation->hosts.n == 0 && !has_remote_shell())
        add_all(&w, starters, "^rsh");
    add_environment(&w); /* a default hostfile may name hosts, too */
    if (scratch != NULL)
        add_variable(&w, BM_LAUNCH_COMMAND); /* which is set later */
    if (bm_program_path(program, sizeof program))
        add(&w, program);
    else
        add(&w, a->argv[0]);
    if (resumed != NULL)
        add_resumption(&w, a, resumed);
    else if (scratch != NULL)
        for (int i = 1; i < a->argc; i++)
            add(&w, a->argv[i]);
    else
        add_arguments(&w, a);
    if (w.failed) {
        bm_mpirun_command_free(w.list);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a command line");
    }
    *out = w.list;
    return BM_OK;
}

void bm_mpirun_command_free(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free((void *)list);
}

char *bm_mpirun_command_text(char *const *list)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return NULL;
    for (size_t i = 0; list[i] != NULL; i++) {
        if (i > 0)
            fputc(' ', memory);
        bm_remote_word(list[i], memory);
    }
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
