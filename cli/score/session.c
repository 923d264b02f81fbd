#include "cli/score/session.h"

#include "bmuf/block_settings.h"
#include "cli/launch/processes.h"
#include "cli/score/scoring.h"
#include "cli/settings.h"
#include "io/batch/batch_settings.h"

static const bm_section sections[] = {
    {"batch", bm_batch_options, bm_batch_check, NULL},
    {"block", bm_block_sizes, bm_block_check, NULL},
    {0}};

static bm_status read_plan(const bm_arguments *a, bm_plan_settings *plan)
{
    bm_config *config = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_config_new(&config));
    BM_TRY_DONE(bm_arguments_set(a, config));
    BM_TRY_DONE(bm_config_check(config, sections));
    status = bm_plan_read(config, plan);
done:
    bm_config_free(config);
    return status;
}

static bm_status check_ranks(const bm_arguments *a, long ranks)
{
    if (ranks <= BM_SHARES)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG, "%s: %ld ranks, but at most %d can be used",
                   a->verb->name, ranks, BM_SHARES);
}

bm_status bm_score_session_open(bm_score_session *s, const bm_arguments *a,
                                long threads)
{
    long ranks = 1;
    const char *device = NULL, *precision = NULL;

    *s = (bm_score_session){0};
    BM_TRY(bm_argument_number(a, "threads", threads, 1, 1024, &threads));
    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &ranks));
    BM_TRY(check_ranks(a, ranks));
    BM_TRY(bm_argument_word(a, "device", BM_DEVICES, "auto", &device));
    BM_TRY(bm_argument_word(a, "precision", BM_PRECISIONS, "auto", &precision));
    BM_TRY(read_plan(a, &s->plan));
    BM_TRY(bm_job_start(a, &bm_job_defaults, &s->comm));
    if (s->comm == NULL)
        return BM_OK;
    BM_TRY(bm_comm_agree(s->comm, check_ranks(a, bm_comm_size(s->comm))));
    return bm_device_open(&s->device, s->comm, device, precision, threads);
}

void bm_score_session_close(bm_score_session *s)
{
    bm_device_close(&s->device);
}
