/*
 * Rows of a manifest that ranks share: pieces arrive as they were sent, and files
 * that only some hosts see are an error.
 */
#include "io/import/piece.h"
#include "io/import/same_files.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pieces -------------------------------------------------------------- */

enum { KINDS = 4, DIM = 3 };

/* Piece k of a rank: frames, frames with a remark, a problem, a failure. */
static bm_piece *piece_of(int rank, size_t k)
{
    bm_piece *p = NULL;

    assert_ok(bm_piece_new(&p, 100 * (size_t)rank + k));
    p->n_read = 7 + k;
    if (k < 2) {
        assert_ok(bm_frames_shape(&p->x, 5 + (size_t)rank, DIM));
        for (size_t i = 0; i < p->x.n * DIM; i++)
            p->x.x[i] = (float)((size_t)rank * 1000 + k * 100 + i);
    }
    if (k == 1) { /* only this one with its recording */
        assert_ok(bm_waveform_shape(&p->recording, 300));
        for (size_t i = 0; i < 300; i++)
            p->recording.x[i] = (int16_t)(rank * 1000 - (int)i);
    }
    if (k == 1)
        p->remark = "digital silence";
    if (k == 2)
        bm_problem_set(&p->problem, "too short", "row of rank %d", rank);
    if (k == 3) {
        p->status = BM_ERR_IO;
        snprintf(p->message, sizeof p->message, "rank %d: the disk fails",
                 rank);
    }
    return p;
}

static void assert_same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL)
        assert_string_equal(a, b);
}

static void assert_same_piece(const bm_piece *a, const bm_piece *b)
{
    assert_int_equal(a->row, b->row);
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->message, b->message);
    assert_int_equal(a->n_read, b->n_read);
    assert_same_text(a->remark, b->remark);
    assert_string_equal(a->problem.text, b->problem.text);
    if (bm_problem_is(&b->problem))
        assert_string_equal(a->problem.kind, b->problem.kind);
    assert_int_equal(a->recording.n, b->recording.n);
    if (b->recording.n > 0)
        assert_memory_equal(a->recording.x, b->recording.x,
                            b->recording.n * sizeof *b->recording.x);
    assert_int_equal(a->x.n, b->x.n);
    if (b->x.n > 0) {
        assert_int_equal(a->x.dim, b->x.dim);
        assert_memory_equal(a->x.x, b->x.x, b->x.n * DIM * sizeof(float));
    }
}

static void test_a_piece_arrives_as_it_was_sent(void **state)
{
    bm_comm *comm = *state;
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);

    for (size_t k = 0; k < KINDS; k++)
        for (int r = 1; r < size; r++) {
            bm_piece *sent = piece_of(r, k), *p = NULL;

            if (rank == r)
                assert_ok(bm_piece_send(comm, sent, 0));
            if (rank == 0) {
                assert_ok(bm_piece_receive(comm, r, &p));
                assert_same_piece(p, sent);
            }
            bm_piece_free(p);
            bm_piece_free(sent);
        }
}

/* ---- files --------------------------------------------------------------- */

static const char manifest[] = "{\"id\": \"a\", \"audio\": \"a.wav\"}\n"
                               "{\"id\": \"b\", \"audio\": \"b.wav\"}\n"
                               "{\"id\": \"c\", \"audio\": \"c.wav\"}\n";

/* Each rank has a folder of its own, as if it were on another host, in which it
 * works. */
static void spill_text(const scratch *s, const char *name, const char *text)
{
    spill(scratch_file(s, name), text, strlen(text));
}

/* What bm_same_files says; nobody has c.wav. */
static bm_status compare(bm_comm *comm, const char *text, bool has_b)
{
    scratch s = scratch_open();
    bm_manifest *m = NULL;
    bm_status status = BM_OK;

    spill_text(&s, "m.jsonl", text);
    spill_text(&s, "a.wav", "");
    if (has_b)
        spill_text(&s, "b.wav", "");
    assert_int_equal(chdir(s.path), 0);
    assert_ok(bm_manifest_read(&m, "m.jsonl", "audio", 100, false));
    status = bm_same_files(comm, m);
    bm_manifest_free(m);
    assert_int_equal(chdir("/"), 0);
    scratch_close(&s);
    return status;
}

static void test_files_that_no_host_has_are_no_error(void **state)
{
    assert_ok(compare(*state, manifest, true));
    assert_ok(compare(*state, manifest, false));
}

static void test_a_file_that_one_host_lacks_is_an_error(void **state)
{
    bm_comm *comm = *state;
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    char host[64] = "";

    for (int lacking = 0; lacking < size; lacking++) {
        bm_status status = compare(comm, manifest, rank != lacking);

        if (size == 1) {
            assert_int_equal(status, BM_OK);
            continue;
        }
        assert_int_equal(status, BM_ERR_MISSING);
        assert_int_equal(bm_comm_agreed(comm), lacking);
        assert_non_null(strstr(bm_last_message(), "m.jsonl:2: host "));
        assert_non_null(
            strstr(bm_last_message(), "cannot open b.wav (No such"));
        assert_int_equal(gethostname(host, sizeof host - 1), 0);
        assert_non_null(strstr(bm_last_message(), host));
    }
}

static void test_another_manifest_is_an_error(void **state)
{
    static const char *const others[] = {
        "{\"id\": \"a\", \"audio\": \"a.wav\"}\n",
        "{\"id\": \"a\", \"audio\": \"a.wav\"}\n"
        "{\"id\": \"b\", \"audio\": \"b.wav\", \"text\": \"x\"}\n"
        "{\"id\": \"c\", \"audio\": \"c.wav\"}\n",
        "{\"id\": \"a\", \"audio\": \"a.wav\"}\n"
        "{\"id\": \"b\", \"audio\": \"b.wav\", \"duration\": 2}\n"
        "{\"id\": \"c\", \"audio\": \"c.wav\"}\n"};
    bm_comm *comm = *state;
    int last = bm_comm_size(comm) - 1;

    FOR_EACH (k, others) {
        const char *own = bm_comm_rank(comm) == last ? others[k] : manifest;
        bm_status status = compare(comm, own, true);

        if (last == 0) {
            assert_int_equal(status, BM_OK);
            continue;
        }
        assert_int_equal(status, BM_ERR_FORMAT);
        assert_int_equal(bm_comm_agreed(comm), last);
        assert_non_null(
            strstr(bm_last_message(), "m.jsonl is another manifest on host "));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_comm, close_comm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_piece_arrives_as_it_was_sent),
        TEST(test_files_that_no_host_has_are_no_error),
        TEST(test_a_file_that_one_host_lacks_is_an_error),
        TEST(test_another_manifest_is_an_error),
    };
    return RUN_GROUP_MPI("rows_of_ranks", tests);
}
