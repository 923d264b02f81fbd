#include "cli/train/dev_examples.h"

#include "core/text/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- seeing -------------------------------------------------------------- */

/* The text of labels, in one line; free(). NULL: no memory. */
static char *line_of(const bm_dataset *data, const int32_t *labels, size_t n)
{
    char *text = NULL, *line = NULL;

    if (bm_vocab_decode(bm_dataset_vocab(data), labels, n, &text) == BM_OK)
        line = bm_printable_copy(text);
    free(text);
    return line;
}

/* Markdown shows indented lines as they are, below each other. */
static bm_status note(const bm_dev_examples *x, const bm_seen *seen, char **out,
                      size_t *size)
{
    char *reference = line_of(x->data, seen->reference, seen->n_reference);
    char *transcript = line_of(x->data, seen->labels, seen->n);
    FILE *memory = open_memstream(out, size);
    bm_status status = BM_OK;

    if (reference == NULL || transcript == NULL || memory == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for examples");
    fprintf(memory, "%s%c", seen->tag, '\0');
    if (seen->has_reference)
        fprintf(memory, "    reference   %s\n", reference);
    fprintf(memory, "    recognised  %s\n%c", transcript, '\0');
done:
    if (memory != NULL && fclose(memory) != 0 && status == BM_OK)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for examples");
    free(reference);
    free(transcript);
    return status;
}

static bm_status see(void *self, const bm_seen *seen)
{
    bm_dev_examples *x = self;

    for (size_t i = 0; i < x->n; i++)
        if (x->sequence[i] == seen->sequence && x->seen[i] == NULL)
            return note(x, seen, &x->seen[i], &x->size[i]);
    return BM_OK;
}

bm_observer bm_dev_examples_choose(bm_dev_examples *x, const bm_dataset *data)
{
    memset(x, 0, sizeof *x);
    x->data = data;
    x->n = data->n < BM_DEV_EXAMPLES ? data->n : BM_DEV_EXAMPLES;
    for (size_t i = 0; i < x->n; i++)
        x->sequence[i] = (int64_t)(i * data->n / x->n);
    return (bm_observer){x, see};
}

/* ---- logging ------------------------------------------------------------- */

/* Collective. All ranks get what one of them has seen of example i. */
static bm_status spread(bm_dev_examples *x, size_t i, bm_comm *comm)
{
    bool mine = x->seen[i] != NULL;
    double of[2] = {mine ? (double)x->size[i] : 0,
                    mine ? bm_comm_rank(comm) : 0}; /* size, rank */
    bm_status status = BM_OK;

    BM_TRY(bm_comm_sum(comm, of, 2));
    if (!mine) {
        x->size[i] = (size_t)of[0];
        x->seen[i] = calloc(x->size[i] + 1, 1);
        if (x->seen[i] == NULL)
            status = BM_FAIL(BM_ERR_MEMORY, "no memory for examples");
    }
    BM_TRY(bm_comm_agree(comm, status));
    return bm_comm_broadcast_bytes(comm, x->seen[i], x->size[i], (int)of[1]);
}

bm_status bm_dev_examples_log(bm_dev_examples *x, bm_comm *comm,
                              bm_telemetry *t)
{
    for (size_t i = 0; i < x->n; i++) {
        BM_TRY(spread(x, i, comm));
        if (x->size[i] > 0)
            bm_telemetry_example(t, x->seen[i],
                                 x->seen[i] + strlen(x->seen[i]) + 1);
    }
    return BM_OK;
}

void bm_dev_examples_free(bm_dev_examples *x)
{
    for (size_t i = 0; i < x->n; i++)
        free(x->seen[i]);
    x->n = 0;
}
