#include "cli/launch/dry_run.h"

#include "cli/hosts/remote.h"
#include "cli/launch/mpirun_command.h"
#include "cli/placement/place_text.h"
#include "core/text/words.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_S = 20 };

/* What is printed of all ranks. */
typedef struct table {
    FILE *out;
    bool bound;
    long threads, rank;
} table;

static void print(table *t, const char *host, bm_placement place)
{
    long threads = t->threads > 0 ? t->threads : place.cores;
    char numa[16] = "-", gpu[16] = "-";

    if (place.numa >= 0)
        snprintf(numa, sizeof numa, "%d", place.numa);
    if (place.gpu >= 0)
        snprintf(gpu, sizeof gpu, "%d", place.gpu);
    fprintf(t->out, "rank %-12ld %s: CPUs %s%s, NUMA node %s, GPU %s, %s\n",
            t->rank++, host, place.cpus,
            place.bound && t->bound ? "" : " (not bound)", numa, gpu,
            bm_count_noun(threads, "thread").text);
}

/* The places of `ranks` ranks as another host answers; those of this host where
 * it does not. */
static void ask(bm_placement *places, long ranks, const char *host)
{
    char program[PATH_MAX], *command = NULL;
    const char *start = NULL;
    bm_remote r = {.host = host};
    json_t *o = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&command, &size);

    if (memory == NULL || !bm_program_path(program, sizeof program))
        return;
    bm_remote_quote(program, memory);
    fprintf(memory, " version --json --placement %ld", ranks);
    if (fclose(memory) == 0 && bm_remote_run(&r, 1, command, ANSWER_S) == BM_OK)
        start = strchr(r.out, '{');
    if (start != NULL && r.code == 0)
        o = json_loads(start, JSON_REJECT_DUPLICATES, NULL);
    for (long k = 0; k < ranks; k++)
        bm_placement_read(
            &places[k],
            json_array_get(json_object_get(o, "placement"), (size_t)k));
    json_decref(o);
    bm_remote_free(&r, 1);
    free(command);
}

static bm_status print_host(table *t, const char *host, long ranks, bool gpus,
                            bool asks)
{
    bm_placement *places = NULL;

    BM_TRY(bm_placement_of_host(&places, ranks, gpus));
    if (asks && !bm_remote_is_here(host))
        ask(places, ranks, host);
    for (long k = 0; k < ranks; k++)
        print(t, host, places[k]);
    free(places);
    return BM_OK;
}

static bm_status print_command(const bm_arguments *a,
                               const bm_allocation *allocation, FILE *out)
{
    char **words = NULL, *text = NULL;

    BM_TRY(bm_mpirun_command(&words, a, allocation, NULL, NULL));
    text = bm_mpirun_command_text(words);
    fprintf(out, "command           %s\n", text != NULL ? text : "");
    free(text);
    bm_mpirun_command_free(words);
    return BM_OK;
}

bm_status bm_dry_run_print(const bm_arguments *a,
                           const bm_allocation *allocation, bool gpus,
                           bool bound, long threads, FILE *out)
{
    const bm_hosts *h = &allocation->hosts;
    table t = {.out = out, .bound = bound, .threads = threads};
    char here[256] = "this host";

    if (threads == 0 && allocation->ranks == 1)
        t.threads = 1;
    if (h->n == 0) {
        (void)gethostname(here, sizeof here - 1);
        BM_TRY(print_host(&t, here, allocation->ranks, gpus, false));
    }
    for (size_t i = 0; i < h->n; i++)
        BM_TRY(print_host(&t, h->list[i].name, h->list[i].slots, gpus,
                          allocation->by == BM_BY_HOSTS));
    if (bm_allocation_is_parallel(allocation))
        return print_command(a, allocation, out);
    return BM_OK;
}
