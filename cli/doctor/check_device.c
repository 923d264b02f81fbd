/* check_device.c - what computes: the device that train would use, GPUs, and
 * their libraries. */
#include "cli/device.h"
#include "cli/doctor/check.h"
#include "cli/doctor/gpu_libraries.h"
#include "core/text/words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *text(const json_t *o, const char *key)
{
    const char *value = json_string_value(json_object_get(o, key));
    return value != NULL ? value : "none";
}

/* Devices, their memory, and whether they reach each other's. */
static void print_devices(bm_check_context *e)
{
    const json_t *list = json_object_get(e->facts, "devices");
    size_t n = json_array_size(list);
    json_int_t peers = json_integer_value(json_object_get(e->facts, "peers"));

    bm_find(e, BM_FINE, "",
            "%s: %s, %.0f GB; driver for CUDA %s, NCCL %s, "
            "cuDNN %s",
            bm_count_noun((long long)n, "GPU").text,
            text(json_array_get(list, 0), "name"),
            json_number_value(
                json_object_get(json_array_get(list, 0), "memory_gb")),
            text(e->facts, "driver"), text(e->facts, "nccl"),
            text(e->facts, "cudnn"));
    if (n > 1 && peers < (json_int_t)(n * (n - 1) / 2))
        bm_find(e, BM_DOUBTFUL,
                "in a virtual machine, pass the switch through as well; else "
                "see nvidia-smi topo -p2p r",
                "only %lld of %zu pairs of GPUs reach each other's memory: "
                "they exchange through the host",
                (long long)peers, n * (n - 1) / 2);
    if (n > 1 && json_object_get(e->facts, "nccl") == NULL)
        bm_find(e, BM_DOUBTFUL, "install libnccl2",
                "there is no NCCL (libnccl.so.2): GPUs exchange through the "
                "host");
}

static void host(bm_check_context *e)
{
    bool wanted = strcmp(e->target->device, "cuda") == 0;
    bm_backend *be = NULL;
    json_t *facts = NULL;

    if (strcmp(e->target->device, "cpu") == 0) {
        bm_find(e, BM_FINE, "", "training uses the CPU, as asked for");
        return;
    }
    facts = bm_gpu_libraries();
    json_object_update(e->facts, facts);
    json_decref(facts);
    if (bm_backend_open(&be, "cuda", 0) == BM_OK) {
        json_object_set_new(e->facts, "device",
                            json_string(bm_backend_about(be)));
        bm_backend_close(be);
        print_devices(e);
    } else if (wanted) {
        bm_find(e, BM_FATAL, "fix this, or use --device cpu",
                "no device cuda: %s", bm_last_message());
    } else if (json_array_size(json_object_get(e->facts, "devices")) > 0) {
        bm_find(e, BM_DOUBTFUL, "fix this, or set job.device = cpu",
                "there is a GPU, but it is not used: %s", bm_last_message());
    } else {
        bm_find(e, BM_FINE, "", "no GPU: training uses the CPU");
    }
}

/* The word of a rank's device, for the comparison. */
static bool has_device(const json_t *rank)
{
    return json_object_get(json_object_get(rank, "facts"), "device") != NULL;
}

static void compare(bm_check_context *e, const json_t *ranks)
{
    static const char *const keys[] = {"driver", "nccl", "cudnn"};
    const json_t *first = json_array_get(ranks, 0);

    for (size_t r = 1; r < json_array_size(ranks); r++) {
        const json_t *other = json_array_get(ranks, r);

        if (has_device(first) != has_device(other)) {
            bm_find(e, BM_FATAL,
                    "set job.device = cpu, or leave these hosts "
                    "out",
                    "%s has a device, %s has none",
                    text(has_device(first) ? first : other, "host"),
                    text(has_device(first) ? other : first, "host"));
            return;
        }
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            const char *a = text(json_object_get(first, "facts"), keys[i]);
            const char *b = text(json_object_get(other, "facts"), keys[i]);

            if (has_device(first) && strcmp(a, b) != 0) {
                bm_find(e, BM_DOUBTFUL, "install the same on all hosts",
                        "%s is %s on %s, but %s on %s", keys[i], a,
                        text(first, "host"), b, text(other, "host"));
                return;
            }
        }
    }
}

const bm_check bm_check_device = {
    .name = "device",
    .help = "GPUs, driver, NCCL, cuDNN, memory, peer access",
    .seconds = 60,
    .host = host,
    .compare = compare,
};
