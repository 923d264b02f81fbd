/* All configurations in experiments/presets can be trained. */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>

static void test_crnn_trains_a_block(void **state)
{
    static const char crnn[] = BMUF_PRESETS "/crnn.ini";
    program p;
    json_t *block = NULL;

    (void)state;
    RUN_PROGRAM(&p, "train", crnn, "--out", "crnn", "--set", "data.train=train",
                "--set", "data.dev=dev", "--set", "train.epochs=1", "--set",
                "train.strategy=local", "--set", "job.workers=1");
    assert_ended(&p, 0);
    assert_int_equal(events("crnn", "block"), 1);
    block = last_event("crnn", "block");
    assert_true(isfinite(number(block, "loss")) && number(block, "loss") > 0);
    assert_true(number(block, "bad_steps") == 0);
    assert_true(number(block, "left_out") == 0);
    json_decref(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crnn_trains_a_block),
    };
    return cmocka_run_group_tests_name("presets", tests, digits_set_up,
                                       digits_tear_down);
}
