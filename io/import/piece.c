#include "io/import/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A piece without its frames and samples, which follow. All ranks run one
 * program. */
typedef struct message_head {
    int64_t row, status, frames, dim, n_read, samples;
    char kind[80], remark[80], text[1000];
} message_head;

bm_status bm_piece_new(bm_piece **out, size_t row)
{
    bm_piece *p = calloc(1, sizeof *p);

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sequence");
    p->row = row;
    *out = p;
    return BM_OK;
}

void bm_piece_free(bm_piece *p)
{
    if (p == NULL)
        return;
    bm_frames_free(&p->x);
    bm_waveform_free(&p->recording);
    free(p);
}

bm_status bm_piece_send(bm_comm *comm, const bm_piece *p, int to)
{
    bool bad = bm_problem_is(&p->problem), failed = p->status != BM_OK;
    message_head head;

    memset(&head, 0, sizeof head);
    head.row = (int64_t)p->row;
    head.status = p->status;
    head.frames = bad || failed ? 0 : (int64_t)p->x.n;
    head.dim = (int64_t)p->x.dim;
    head.n_read = (int64_t)p->n_read;
    head.samples = head.frames > 0 ? (int64_t)p->recording.n : 0;
    snprintf(head.kind, sizeof head.kind, "%s", bad ? p->problem.kind : "");
    snprintf(head.remark, sizeof head.remark, "%s",
             p->remark != NULL ? p->remark : "");
    snprintf(head.text, sizeof head.text, "%s",
             failed ? p->message : p->problem.text);
    bm_comm_send_bytes(comm, &head, sizeof head, to);
    bm_comm_send(comm, p->x.x, (size_t)(head.frames * head.dim), to);
    if (head.samples > 0)
        bm_comm_send_bytes(comm, p->recording.x,
                           (size_t)head.samples * sizeof(int16_t), to);
    return bm_comm_wait(comm);
}

/* The texts of a piece. */
static void read_message_head(bm_piece *p, const message_head *head)
{
    p->status = (bm_status)head->status;
    p->n_read = (size_t)head->n_read;
    memcpy(p->kind, head->kind, sizeof p->kind);
    memcpy(p->remark_text, head->remark, sizeof p->remark_text);
    p->remark = p->remark_text[0] != '\0' ? p->remark_text : NULL;
    if (p->status != BM_OK)
        snprintf(p->message, sizeof p->message, "%s", head->text);
    else if (head->text[0] != '\0')
        bm_problem_set(&p->problem, p->kind, "%s", head->text);
}

bm_status bm_piece_receive(bm_comm *comm, int from, bm_piece **out)
{
    message_head head;
    bm_piece *p = NULL;
    bm_status status = BM_OK;

    bm_comm_receive_bytes(comm, &head, sizeof head, from);
    BM_TRY(bm_comm_wait(comm));
    BM_TRY(bm_piece_new(&p, (size_t)head.row));
    read_message_head(p, &head);
    if (head.frames > 0) {
        BM_TRY_DONE(
            bm_frames_shape(&p->x, (size_t)head.frames, (size_t)head.dim));
        bm_comm_receive(comm, p->x.x, (size_t)(head.frames * head.dim), from);
        BM_TRY_DONE(bm_comm_wait(comm));
    }
    if (head.samples > 0) {
        BM_TRY_DONE(bm_waveform_shape(&p->recording, (size_t)head.samples));
        bm_comm_receive_bytes(comm, p->recording.x,
                              (size_t)head.samples * sizeof(int16_t), from);
        BM_TRY_DONE(bm_comm_wait(comm));
    }
    *out = p;
    p = NULL;
done:
    bm_piece_free(p);
    return status;
}
