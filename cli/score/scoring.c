#include "cli/score/scoring.h"

#include "cli/progress.h"

#include <stdlib.h>

bm_status bm_scoring_open(bm_scoring *s, const char *path,
                          const char *directory, bool force)
{
    BM_TRY(bm_recogniser_find(path, s->model, sizeof s->model));
    BM_TRY(bm_recogniser_read(&s->net, s->be, s->model, BM_SHARES));
    BM_TRY(bm_dataset_open(&s->data, directory));
    BM_TRY(bm_recogniser_fits(&s->net, s->data, force));
    s->labels = calloc(s->data->n + 1, sizeof *s->labels);
    s->words = calloc(s->data->n + 1, sizeof *s->words);
    if (s->labels == NULL || s->words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to score %zu sequences",
                       s->data->n);
    return BM_OK;
}

/* Called for every sequence: see bm_observer. */
static bm_status see(void *self, const bm_seen *seen)
{
    bm_scoring *s = self;
    size_t k = (size_t)seen->sequence, n = s->data->n;
    size_t done = ++s->seen * (size_t)bm_comm_size(s->comm);

    /* The other ranks have done about as many. */
    bm_progress_count("sequences", done < n ? done : n, n);
    s->labels[k] = (bm_error_count){(double)bm_edits_total(seen->edits),
                                    (double)seen->n_reference};
    s->words[k] = (bm_error_count){(double)bm_edits_total(seen->word_edits),
                                   (double)seen->words};
    return s->observer != NULL ? s->observer->see(s->observer->self, seen)
                               : BM_OK;
}

/* Counts of other ranks' sequences are zero, so that a sum gives all of them to
 * all ranks. */
static bm_status gather(const bm_scoring *s, bm_error_count *count)
{
    enum { COLUMNS = sizeof *count / sizeof(double) };

    return bm_comm_sum(s->comm, (double *)(void *)count, COLUMNS * s->data->n);
}

bm_status bm_scoring_run(bm_scoring *s, const bm_plan_settings *plan,
                         const bm_observer *observer)
{
    bm_observer counter = {s, see};
    bm_evaluator *evaluator = NULL;
    bm_status status = BM_OK;

    s->observer = observer;
    s->seen = 0;
    BM_TRY(bm_evaluator_open(&evaluator, s->comm, s->net.model, s->data, plan,
                             BM_SHARES));
    bm_progress_open(bm_comm_rank(s->comm) == 0);
    status = bm_evaluate(evaluator, &counter, &s->result);
    bm_progress_close();
    bm_evaluator_close(evaluator);
    BM_TRY(status);
    BM_TRY(gather(s, s->labels));
    return gather(s, s->words);
}

void bm_scoring_close(bm_scoring *s)
{
    bm_recogniser_close(&s->net);
    bm_dataset_close(s->data);
    free(s->labels);
    free(s->words);
    *s = (bm_scoring){.comm = s->comm, .be = s->be};
}
