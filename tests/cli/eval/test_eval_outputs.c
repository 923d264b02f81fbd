/*
 * What bmuf eval writes: compares its logits with its transcripts and its loss,
 * and other forms of output with its logits.
 */
#include "io/model/ark.h"
#include "tests/support/command.h"
#include "tests/support/evaluations.h"
#include "tests/support/folder.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Classes in their order, as bmuf pack sorts them. */
static const char symbols[] = "\b abc";

/* ---- logits -------------------------------------------------------------- */

/* The best class of each frame, without repeats and blanks. */
static void decode(const dump_array *a, char *out)
{
    size_t before = 0;

    for (size_t t = 0; t < a->rows; t++) {
        const float *row = a->x + t * a->columns;
        size_t best = 0;

        for (size_t c = 1; c < a->columns; c++)
            best = row[c] > row[best] ? c : best;
        if (best != 0 && best != before)
            *out++ = symbols[best];
        before = best;
    }
    *out = '\0';
}

static void test_transcripts_are_the_best_paths_of_the_logits(void **_)
{
    char words[N][LONGEST], best[LONGEST], id[32];
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "d.npz",
                     "--hyp", "d.trn"),
                0);
    d = dump_read("d.npz");
    read_trn("d.trn", words);
    assert_int_equal(d.n, N);
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = NULL;
        snprintf(id, sizeof id, "test-%zu", i);
        a = dump_find(&d, id);
        assert_int_equal(a->rows, (speech_frames(i) + 1) / 2); /* stack:2 */
        assert_int_equal(a->columns, 5);
        decode(a, best);
        assert_string_equal(best, words[i]);
    }
    dump_free(&d);
}

static size_t classes_of(const char *text, int32_t *labels)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        labels[n++] = (int32_t)(strchr(symbols, *text) - symbols);
    return n;
}

static double ctc_of(const dump_array *a, const char *text)
{
    int32_t labels[LONGEST];
    size_t n = classes_of(text, labels);
    double *dy = zeros(a->rows * a->columns, sizeof *dy);
    double loss = ctc_reference(a->rows, a->columns, a->x, labels, n, dy);

    free(dy);
    return loss;
}

static void test_the_loss_is_the_ctc_of_the_logits(void **_)
{
    json_t *result = evaluate("test", "l.trn");
    double all = 0;
    dump d = {0};
    char id[32];

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "l.npz"), 0);
    d = dump_read("l.npz");
    for (size_t i = 0; i < N; i++) {
        snprintf(id, sizeof id, "test-%zu", i);
        all += ctc_of(dump_find(&d, id), speech_text(i));
    }
    assert_true(near(number(result, "loss"), all / N, 1e-6));
    dump_free(&d);
    json_decref(result);
}

/* A data set of one sequence: the mean is its loss. */
static void test_one_sequence_alone_has_its_own_loss(void **_)
{
    json_t *result = NULL;
    dump d = {0};

    (void)_;
    write_text("single.jsonl", "{\"id\": \"u\", \"audio\": \"test-3.wav\", "
                               "\"text\": \"ca b\"}\n");
    assert_code(BMUF("pack", "--audio", "single.jsonl", "--out", "single",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    result = evaluate("single", "s.trn");
    assert_code(BMUF("eval", "half.safetensors", "single", "--dump", "s.npz"),
                0);
    d = dump_read("s.npz");
    assert_int_equal(d.n, 1);
    assert_true(
        near(number(result, "loss"), ctc_of(dump_find(&d, "u"), "ca b"), 1e-6));
    dump_free(&d);
    json_decref(result);
}

/* Halves change little, bytes more; both models are read like any other. */
static void test_models_with_fewer_bits_score_nearly_the_same(void **_)
{
    static const struct {
        const char *type;
        double logits, loss; /* differences at most */
    } cases[] = {{"fp16", 0.02, 0.01}, {"int8", 0.2, 0.1}};
    json_t *whole = evaluate("test", "w.trn");
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "w.npz"), 0);
    d = dump_read("w.npz");
    FOR_EACH (i, cases) {
        json_t *narrow = NULL;
        double most = 0;
        dump e = {0};

        assert_code(BMUF("export", "half.safetensors", "--weights",
                         cases[i].type, "--out", "narrow.safetensors"),
                    0);
        narrow = result_of(BMUF("eval", "narrow.safetensors", "test", "--json",
                                "--dump", "n.npz"));
        e = dump_read("n.npz");
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < d.arrays[k].rows * d.arrays[k].columns; j++)
                most = fmax(most,
                            fabs((double)d.arrays[k].x[j] - e.arrays[k].x[j]));
        assert_true(most > 0 && most < cases[i].logits);
        assert_true(fabs(number(whole, "loss") - number(narrow, "loss")) <
                    cases[i].loss * number(whole, "loss"));
        dump_free(&e);
        json_decref(narrow);
    }
    dump_free(&d);
    json_decref(whole);
}

/* Of both kinds of probabilities. */
static void test_posteriors_are_the_softmax_of_the_logits(void **_)
{
    dump logits = {0}, p = {0}, log_p = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "p.npz",
                     "--values", "posteriors"),
                0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "q.npz",
                     "--values", "log-posteriors"),
                0);
    logits = dump_read("k.npz");
    p = dump_read("p.npz");
    log_p = dump_read("q.npz");
    for (size_t i = 0; i < N; i++) {
        const dump_array *x = &logits.arrays[i];

        for (size_t t = 0; t < x->rows; t++) {
            double sum = 0;

            for (size_t c = 0; c < x->columns; c++)
                sum += exp((double)x->x[t * x->columns + c]);
            for (size_t c = 0; c < x->columns; c++) {
                size_t k = t * x->columns + c;
                double right = exp((double)x->x[k]) / sum;

                assert_true(near(p.arrays[i].x[k], right, 1e-7));
                assert_true(near(log_p.arrays[i].x[k], log(right), 1e-6));
            }
        }
    }
    dump_free(&logits);
    dump_free(&p);
    dump_free(&log_p);
}

/* ---- Kaldi's archives ---------------------------------------------------- */

static int32_t number_at(const char *bytes)
{
    int32_t x = 0;

    memcpy(&x, bytes, sizeof x);
    return x;
}

/* Kaldi's binary form of a matrix of floats. */
static void assert_matrix(const char *bytes, const dump_array *a)
{
    assert_memory_equal(bytes, "\0BFM \4", 6);
    assert_int_equal(number_at(bytes + 6), a->rows);
    assert_int_equal(bytes[10], 4);
    assert_int_equal(number_at(bytes + 11), a->columns);
    assert_memory_equal(bytes + 15, a->x, a->rows * a->columns * sizeof *a->x);
}

static void test_an_archive_has_what_its_list_says(void **_)
{
    char *list = NULL, *archive = NULL, *rest = NULL, before[32] = "";
    size_t size = 0, n = 0;
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump",
                     "ark,scp:k.ark,k.scp"),
                0);
    d = dump_read("k.npz");
    list = slurp(in_folder("k.scp"), &size);
    archive = slurp(in_folder("k.ark"), &size);
    for (char *line = strtok_r(list, "\n", &rest); line != NULL; n++) {
        char id[32];
        size_t at = 0;

        assert_int_equal(sscanf(line, "%31s k.ark:%zu", id, &at), 2);
        assert_true(strcmp(before, id) < 0); /* sorted */
        snprintf(before, sizeof before, "%s", id);
        assert_true(at > strlen(id) && at < size);
        assert_memory_equal(archive + at - strlen(id) - 1, id, strlen(id));
        assert_matrix(archive + at, dump_find(&d, id));
        line = strtok_r(NULL, "\n", &rest);
    }
    assert_int_equal(n, N);
    free(list);
    free(archive);
    dump_free(&d);
}

/* As text, with nine digits: "id [", rows, "]". */
static void test_an_archive_as_text_has_the_same_numbers(void **_)
{
    char *text = NULL, *at = NULL;
    size_t size = 0;
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "k.npz"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "ark,t:t"),
                0);
    d = dump_read("k.npz");
    at = text = slurp(in_folder("t"), &size);
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = NULL;
        char id[32];
        int n = 0;

        assert_int_equal(sscanf(at, "%31s [%n", id, &n), 1);
        a = dump_find(&d, id);
        at += n;
        for (size_t k = 0; k < a->rows * a->columns; k++)
            assert_true(strtof(at, &at) == a->x[k]);
        assert_memory_equal(at, " ]\n", 3);
        at += 3;
    }
    assert_int_equal(at - text, size);
    free(text);
    dump_free(&d);
}

/* ---- places -------------------------------------------------------------- */

static void test_places_of_archives_are_checked(void **_)
{
    static const char *const odd[] = {"ark:",      "ark,scp:x.ark", "scp:x",
                                      "ark,x:y",   "ark,scp:x,x",   "ark:-",
                                      "ark,scp:,x"};
    const float x[2] = {1, 2};
    bm_ark *a = NULL;

    (void)_;
    FOR_EACH (i, odd) {
        assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", odd[i]),
                     64, odd[i], "ark:FILE");
    }
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "ark:no/x"),
                 73, "no/x");
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--values", "posteriors"), 64,
        "--dump");
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "x.npz",
                      "--values", "odds"),
                 64, "log-posteriors");
    assert_int_equal(access(in_folder("x.npz"), F_OK), -1);
    assert_ok(bm_ark_create(&a, "ark:blank.ark"));
    assert_int_equal(bm_ark_add(a, "a b", x, 1, 2, 2), BM_ERR_FORMAT);
    bm_ark_close(a);
    assert_int_equal(access("blank.ark", F_OK), -1);
}

/* What a temporary file was once called, as a link to another file. */
static void test_outputs_do_not_follow_links(void **_)
{
    char *text = NULL;
    size_t n = 0;

    (void)_;
    write_text("mine", "my text");
    assert_int_equal(symlink("mine", in_folder(".l.npz.tmp")), 0);
    assert_int_equal(symlink("mine", in_folder(".l.trn.tmp")), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "l.npz",
                     "--hyp", "l.trn"),
                0);
    text = slurp(in_folder("mine"), &n);
    assert_string_equal(text, "my text");
    free(text);
}

/* Neither the model nor the set, nor one output by another. */
static void test_outputs_replace_no_input(void **_)
{
    static const struct {
        const char *hyp, *dump, *word;
    } cases[] = {
        {"model.npz", "x.npz", "--hyp model.npz"},
        {"x.trn", "./model.npz", "--dump ./model.npz"},
        {"x.trn", "ark:model.npz", "--dump model.npz"},
        {"x.trn", "ark,scp:x.ark,test/vocab.txt", "--dump test/vocab.txt"},
        {"test/vocab.txt", "x.npz", "--hyp test/vocab.txt"},
        {"x.npz", "./x.npz", "--hyp and --dump"},
        {"x.scp", "ark,scp:x.ark,x.scp", "--hyp and --dump"},
        {"x.trn", "ark,scp:x.ark,./x.ark", "--dump and --dump"},
    };
    size_t n = 0, m = 0;
    char *model = slurp(in_folder("half.safetensors"), &n), *after = NULL;

    (void)_;
    spill(in_folder("model.npz"), model, n);
    FOR_EACH (i, cases)
        assert_fails(BMUF("eval", "model.npz", "test", "--hyp", cases[i].hyp,
                          "--dump", cases[i].dump),
                     73, cases[i].word, "another file");
    after = slurp(in_folder("model.npz"), &m);
    assert_int_equal(m, n);
    assert_memory_equal(after, model, n);
    free(after);
    free(model);
    assert_code(BMUF("eval", "model.npz", "test"), 0);
    for (int turn = 0; turn < 2; turn++) /* its own output is replaced */
        assert_code(BMUF("eval", "model.npz", "test", "--hyp", "test/x.trn",
                         "--dump", "test/x.npz"),
                    0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transcripts_are_the_best_paths_of_the_logits),
        cmocka_unit_test(test_the_loss_is_the_ctc_of_the_logits),
        cmocka_unit_test(test_models_with_fewer_bits_score_nearly_the_same),
        cmocka_unit_test(test_an_archive_has_what_its_list_says),
        cmocka_unit_test(test_an_archive_as_text_has_the_same_numbers),
        cmocka_unit_test(test_posteriors_are_the_softmax_of_the_logits),
        cmocka_unit_test(test_places_of_archives_are_checked),
        cmocka_unit_test(test_one_sequence_alone_has_its_own_loss),
        cmocka_unit_test(test_outputs_do_not_follow_links),
        cmocka_unit_test(test_outputs_replace_no_input),
    };
    return cmocka_run_group_tests_name("eval_outputs", tests, make_half_trained,
                                       folder_remove);
}
