/* bmuf align --targets, and the way from a CTC model to a network trained on
 * frame targets. */
#include "io/shard/dataset.h"
#include "tests/cli/align/aligned.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* The class of stored frame t of sequence i, from the spans of JSON. */
static int32_t expected_class(size_t i, size_t t, bool nearest)
{
    const json_t *labels = json_object_get(aligned[i], "labels");
    size_t frames = speech_frames(i), outputs = (frames + 2) / STRIDE;
    size_t output = t / STRIDE;
    double k = (double)output, best = 1e9;
    int32_t class = 0;

    assert_true(k < (double)outputs);
    for (size_t n = 0; n < json_array_size(labels); n++) {
        const json_t *label = json_array_get(labels, n);
        double first = number(label, "first_frame") / STRIDE;
        double last = ceil(number(label, "end_frame") / STRIDE) - 1;
        double away = fmax(fmax(first - k, k - last), 0);

        if (away < best && (nearest || away == 0)) { /* ties: the one before */
            best = away;
            class = (int32_t)(strchr(symbols, speech_text(i)[n]) - symbols);
        }
    }
    return class;
}

static void check_targets(const char *name, bool nearest)
{
    bm_dataset *from = NULL, *to = NULL;
    bm_sequences a = {0}, b = {0};
    size_t i = 0, blanks = 0;

    assert_ok(bm_dataset_open(&from, in_folder("test")));
    assert_ok(bm_dataset_open(&to, in_folder(name)));
    assert_int_equal(to->n, N);
    assert_int_equal(to->labels, to->frames);
    assert_string_equal(bm_shard_features_text(to->shards[0]),
                        bm_shard_features_text(from->shards[0]));
    assert_true(bm_shard_frame_shift(to->shards[0]) == 0.01);
    assert_int_equal(to->n_units, 1); /* both are small: one unit */
    assert_ok(bm_dataset_read(to, 0, &b));
    for (size_t u = 0, frame = 0; u < from->n_units; u++) {
        size_t n = 0;

        assert_ok(bm_dataset_read(from, u, &a));
        for (size_t k = 0; k < a.n; k++, i++) {
            assert_int_equal(b.frames[i], a.frames[k]);
            assert_memory_equal(b.x + frame * from->features,
                                a.x + n * from->features,
                                (size_t)a.frames[k] * from->features * 4);
            for (size_t t = 0; t < (size_t)a.frames[k]; t++) {
                int32_t class = expected_class(i, t, nearest);

                assert_int_equal(b.targets[frame + t], class);
                blanks += class == 0;
            }
            frame += (size_t)a.frames[k];
            n += (size_t)a.frames[k];
        }
    }
    assert_int_equal(i, N);
    assert_true(nearest ? blanks == 0 : blanks > 0);
    bm_sequences_free(&a);
    bm_sequences_free(&b);
    bm_dataset_close(from);
    bm_dataset_close(to);
}

static void test_every_stored_frame_has_the_class_of_its_output(void **state)
{
    (void)state;
    assert_code(BMUF("align", "run", "test", "--targets", "as-class"), 0);
    check_targets("as-class", false);
    assert_code(BMUF("align", "run", "test", "--targets", "as-nearest",
                     "--blank", "nearest"),
                0);
    check_targets("as-nearest", true);
    assert_code(BMUF("check", "as-nearest"), 0);
    assert_fails(BMUF("align", "run", "test", "--targets", "as-class"), 73,
                 "as-class");
}

static void test_no_labels_have_no_nearest_class(void **state)
{
    outcome o;

    (void)state;
    write_text(
        "some.jsonl",
        "{\"id\": \"empty\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n"
        "{\"id\": \"good\", \"audio\": \"test-0.wav\", \"text\": \"a b\"}\n");
    write_text(
        "empty.jsonl",
        "{\"id\": \"empty\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n");
    o = BMUF("align", "run", "some.jsonl", "--targets", "some-t", "--blank",
             "nearest");
    assert_code(o, 0);
    assert_says(o.err, "aligned 2 of 2 sequences");
    assert_says(o.err, "left 1 sequence without labels out of some-t");
    assert_says(BMUF("info", "some-t").out, "sequences  1 in");
    assert_code(BMUF("align", "run", "some.jsonl", "--targets", "some-c"), 0);
    assert_says(BMUF("info", "some-c").out, "sequences  2 in");
    assert_fails(BMUF("align", "run", "empty.jsonl", "--targets", "empty-t",
                      "--blank", "nearest"),
                 65, "no sequence has labels, which --blank nearest needs");
}

/* Whatever the names of the shards; nor does a run become a set. */
static void test_targets_are_not_mixed_with_other_files(void **state)
{
    outcome before;

    (void)state;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "named",
                     "--name", "named", "--vocab", "train", "--set",
                     "features.mels=8"),
                0);
    assert_fails(BMUF("align", "run", "named", "--targets", "named"), 73,
                 "named already has shards", "--targets a new folder");
    assert_fails(BMUF("align", "run", "test", "--targets", "named"), 73,
                 "named already has shards");
    assert_code(BMUF("check", "named"), 0);
    before = BMUF("info", "run");
    assert_fails(BMUF("align", "run", "test", "--targets", "run"), 73,
                 "run is a run", "another folder");
    assert_string_equal(before.out, BMUF("info", "run").out);
    assert_int_equal(access(in_folder("run/vocab.txt"), F_OK), -1);
}

/* Halves stay the halves that they were. */
static void test_targets_are_stored_as_their_set_is(void **state)
{
    (void)state;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "half",
                     "--vocab", "train", "--set", "features.mels=8", "--set",
                     "shard.store=f16"),
                0);
    assert_code(BMUF("align", "run", "half", "--targets", "half-t"), 0);
    assert_says(BMUF("info", "half-t").out, "stored as f16");
    assert_code(BMUF("check", "half-t"), 0);
}

/* CTC, alignment, then a network without memory for every frame: most frames
 * of the other recordings are right, where the most frequent class has at most
 * half of them. */
static void test_the_hybrid_route_leads_to_few_wrong_frames(void **state)
{
    size_t count[CLASSES] = {0}, all = 0, most = 0;
    json_t *result = NULL;
    outcome o;

    (void)state;
    for (size_t i = 0; i < N; i++)
        for (size_t t = 0; t < speech_frames(i); t++, all++)
            count[expected_class(i, t, true)]++;
    for (size_t c = 0; c < CLASSES; c++)
        most = count[c] > most ? count[c] : most;
    assert_true(most < all / 2);
    assert_code(BMUF("align", "run", "train", "--targets", "train-t", "--blank",
                     "nearest"),
                0);
    assert_code(BMUF("align", "run", "test", "--targets", "test-t", "--blank",
                     "nearest"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "dnn", "--set",
                     "data.train=train-t", "--set", "data.dev=test-t", "--set",
                     "model.net=linear:32 relu linear", "--set",
                     "model.loss=cross_entropy", "--set", "train.epochs=10",
                     "--set", "train.rate=0.1"),
                0);
    o = BMUF("eval", "dnn", "test-t", "--json");
    assert_code(o, 0);
    result = parse_json(o.out);
    assert_true(number(result, "labels") == (double)all);
    assert_true(number(result, "ler") < 0.25);
    assert_true(number(result, "words") == 0); /* frames do not form words */
    json_decref(result);
    assert_fails(BMUF("align", "dnn", "test-t"), 65,
                 "only a model trained with ctc can align");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_stored_frame_has_the_class_of_its_output),
        cmocka_unit_test(test_no_labels_have_no_nearest_class),
        cmocka_unit_test(test_targets_are_not_mixed_with_other_files),
        cmocka_unit_test(test_targets_are_stored_as_their_set_is),
        cmocka_unit_test(test_the_hybrid_route_leads_to_few_wrong_frames),
    };
    return cmocka_run_group_tests_name("alignment_targets", tests, align_set_up,
                                       align_tear_down);
}
