#define _GNU_SOURCE /* sched_getaffinity */
#include "cli/device.h"

#include "core/log.h"
#include "core/text/words.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- cores -------------------------------------------------------------- */

long bm_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0
               ? CPU_COUNT(&set)
               : sysconf(_SC_NPROCESSORS_ONLN);
}

static void note_cores(const bm_comm *comm, long threads)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), own = bm_cores();
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    long ranks = here != NULL ? strtol(here, NULL, 10) : bm_comm_size(comm);

    if (ranks * threads > cores)
        bm_log(BM_NOTE,
               "%s of %s share %s of this host: training is slower; the result "
               "is the same",
               bm_count_noun(ranks * threads, "thread").text,
               bm_count_noun(ranks, "rank").text,
               bm_count_noun(cores, "core").text);
    else if (threads > own)
        bm_log(BM_NOTE,
               "%s on %s, to which this rank is bound; start it with mpirun "
               "--bind-to none",
               bm_count_noun(threads, "thread").text,
               bm_count_noun(own, "core").text);
}

/* ---- device ------------------------------------------------------------- */

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static bool on_cuda(const bm_device *d)
{
    return is(d->name, "cuda");
}

/* The index of this rank among the ranks of its host. */
static int place_on_host(const bm_comm *comm)
{
    int rank = comm != NULL ? bm_comm_rank(comm) : 0, place = 0;

    for (int r = 0; r < rank; r++)
        place += bm_comm_host(comm, r) == bm_comm_host(comm, rank);
    return place;
}

/* Opens the backend of this rank. */
static bm_status open_own(bm_device *d, const bm_comm *comm, const char *device)
{
    bm_status status = BM_OK;

    d->name = "cuda";
    if (!is(device, "cpu")) {
        status = bm_backend_open(&d->be, "cuda", place_on_host(comm));
        if (status == BM_OK)
            return BM_OK;
        if (is(device, "cuda"))
            return BM_FAIL(BM_ERR_DEVICE, "%s; use device cpu instead",
                           bm_last_message());
        snprintf(d->why, sizeof d->why, "%s", bm_last_message());
    }
    d->name = "cpu";
    return bm_backend_open(&d->be, "cpu", 0);
}

/* Collective. All ranks must have the same kind of device. */
static bm_status agree(const bm_device *d, bm_comm *comm)
{
    int there[2] = {on_cuda(d), !on_cuda(d)};
    bm_status status = BM_OK;

    BM_TRY(bm_comm_max(comm, there, 2));
    if (there[0] == 0 || there[1] == 0)
        return BM_OK;
    if (!on_cuda(d))
        status = BM_FAIL(BM_ERR_DEVICE,
                         "%s; but other ranks have a device; use device cpu",
                         d->why);
    return bm_comm_agree(comm, status);
}

/* The status of all ranks. */
static bm_status of_all(bm_comm *comm, bm_status status)
{
    return comm != NULL ? bm_comm_agree(comm, status) : status;
}

/* Collective. All ranks have the same precision: bf16 if it suits the devices
 * of all. */
static bm_status choose_precision(bm_device *d, bm_comm *comm,
                                  const char *precision)
{
    int others = bm_backend_precision(d->be) != BM_BF16;

    d->precision = precision;
    if (!is(precision, "auto"))
        return BM_OK;
    if (comm != NULL)
        BM_TRY(bm_comm_max(comm, &others, 1));
    d->precision = others ? "fp32" : "bf16";
    return BM_OK;
}

static bm_status set_up(bm_device *d, const bm_comm *comm, long threads)
{
    d->threads = (size_t)threads;
    if (!on_cuda(d) && comm != NULL)
        note_cores(comm, threads);
    return bm_backend_use(d->be, d->threads,
                          is(d->precision, "bf16")   ? BM_BF16
                          : is(d->precision, "tf32") ? BM_TF32
                                                     : BM_FP32);
}

bm_status bm_device_open(bm_device *out, bm_comm *comm, const char *device,
                         const char *precision, long threads)
{
    bm_device d = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(of_all(comm, open_own(&d, comm, device)));
    if (comm != NULL)
        BM_TRY_DONE(agree(&d, comm));
    BM_TRY_DONE(choose_precision(&d, comm, precision));
    BM_TRY_DONE(of_all(comm, set_up(&d, comm, threads)));
    *out = d;
    d.be = NULL;
done:
    bm_backend_close(d.be);
    return status;
}

void bm_device_close(bm_device *d)
{
    bm_backend_close(d->be);
    d->be = NULL;
}

/* Whether the system has the device file of a GPU: of NVIDIA's driver, or of
 * Windows' subsystem. */
static bool has_gpu(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 ||
           access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

void bm_device_log(const bm_device *d)
{
    const char *none = "";

    if (on_cuda(d)) {
        bm_log(BM_NOTE, "computing on cuda in %s: %s", d->precision,
               bm_backend_about(d->be));
        return;
    }
    if (d->why[0] != '\0' && bm_backend_exists("cuda")) {
        if (has_gpu())
            bm_log(BM_WARNING, "the GPU is not used: %s", d->why);
        else
            none = "no GPU: ";
    }
    bm_log(BM_NOTE, "%scomputing on the CPU in %s", none, d->precision);
    if (d->why[0] != '\0')
        bm_log(BM_DETAIL, "%s", d->why);
}
