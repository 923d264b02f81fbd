#include "cli/launch/launcher.h"

#include "cli/hosts/slurm.h"
#include "cli/launch/mpirun_command.h"

#include <stdlib.h>

/* The option that asks for ranks; NULL: none does. */
static const char *asks_for_ranks(const bm_arguments *a)
{
    static const char *const names[] = {"ranks", "hosts", "hostfile"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bm_argument(a, names[i]) != NULL)
            return i == 0 ? "-n" : i == 1 ? "--hosts" : "--hostfile";
    return NULL;
}

/* Ranks were started by `who`; options must not ask for others. */
static bm_status check_options(const bm_arguments *a, const char *who)
{
    const char *option = asks_for_ranks(a);

    if (option == NULL)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "%s: %s has started the ranks of this job, and %s asks for "
                   "others; drop %s, or call bmuf %s without %s",
                   a->verb->name, who, option, option, a->verb->name, who);
}

static bm_status refuse_srun(const bm_arguments *a)
{
    return BM_FAIL(BM_ERR_ARG,
                   "%s: srun has started %ld tasks without PMIx, by which Open "
                   "MPI finds the other ranks; start them with srun "
                   "--mpi=pmix (srun --mpi=list says whether Slurm has it), "
                   "or leave out srun: in a batch script bmuf %s starts a rank "
                   "for each task",
                   a->verb->name, bm_slurm_step_tasks(), a->verb->name);
}

bm_status bm_launcher_find(const bm_arguments *a, bm_launcher *out)
{
    const char *pmi = getenv("PMI_SIZE");

    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL &&
        getenv(BM_LAUNCH_COMMAND) != NULL) {
        *out = BM_LAUNCHER_OURS;
        return BM_OK;
    }
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMIX_RANK") != NULL) {
        *out = BM_LAUNCHER_OTHER;
        return check_options(a, bm_slurm_task() ? "srun" : "mpirun");
    }
    *out = BM_LAUNCHER_NONE;
    if (bm_slurm_task() && bm_slurm_step_tasks() > 1)
        return refuse_srun(a);
    if (pmi != NULL && strtol(pmi, NULL, 10) > 1)
        return BM_FAIL(BM_ERR_ARG,
                       "%s: a launcher of another MPI has started %ld ranks, "
                       "which Open MPI cannot join; use Open MPI's mpirun, or "
                       "bmuf %s -n %ld",
                       a->verb->name, strtol(pmi, NULL, 10), a->verb->name,
                       strtol(pmi, NULL, 10));
    return BM_OK;
}
