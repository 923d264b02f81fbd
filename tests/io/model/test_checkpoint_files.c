/*
 * Checkpoints in a directory are listed, newest first, and pruned; other files
 * stay.
 */
#include "io/model/checkpoint.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

static void touch(const scratch *s, const char *name)
{
    spill(scratch_file(s, name), "", 0);
}

static void test_old_checkpoints_and_temporary_files_are_removed(void **state)
{
    static const char *const others[] = {
        "model.safetensors",          "block-1.safetensors",
        "block-00000009.safe",        "block-0000000x.safetensors",
        "block--0000003.safetensors", ".01234567.other.safetensors.tmp"};
    scratch s = scratch_open();
    int64_t blocks[10] = {0};
    char path[200];

    (void)state;
    bm_checkpoint_path(s.path, 1234, path, sizeof path);
    assert_string_equal(path, scratch_file(&s, "block-00001234.safetensors"));
    assert_int_equal(bm_checkpoint_list(scratch_file(&s, "no"), blocks, 10), 0);
    bm_checkpoint_prune(scratch_file(&s, "no"), &(bm_retention){.newest = 3});
    FOR_EACH (i, others)
        touch(&s, others[i]);
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 10), 0);
    for (int64_t k = 0; k < 5; k++) {
        bm_checkpoint_path(s.path, (k * 3 % 5) * 50000000, path, sizeof path);
        spill(path, "", 0);
    }
    touch(&s, ".89abcdef.block-00000007.safetensors.tmp");
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 10), 5);
    for (int64_t k = 0; k < 5; k++)
        assert_int_equal(blocks[k], (4 - k) * 50000000);
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 2), 2);
    assert_int_equal(blocks[0], 200000000);
    assert_int_equal(blocks[1], 150000000);
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 0), 0);

    bm_checkpoint_prune(s.path, &(bm_retention){.newest = 9});
    assert_int_equal(scratch_count(&s, false), 6 + 5);
    bm_checkpoint_prune(s.path, &(bm_retention){.newest = 3});
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 10), 3);
    assert_int_equal(blocks[2], 100000000);
    bm_checkpoint_prune(s.path, &(bm_retention){.newest = 0});
    assert_int_equal(bm_checkpoint_list(s.path, blocks, 10), 1);
    assert_int_equal(blocks[0], 200000000);
    assert_int_equal(scratch_count(&s, false), 6 + 1);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_checkpoints_and_temporary_files_are_removed),
    };

    return RUN_GROUP("checkpoint_files", tests);
}
