/*
 * Checkpoints in a directory are listed, newest first, and pruned; other files
 * stay.
 */
#include "io/model/checkpoint.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <string.h>

static void touch(const scratch *s, const char *name)
{
    spill(scratch_file(s, name), "", 0);
}

static size_t listed(const char *directory, int64_t *blocks, size_t room)
{
    size_t n = 77;

    assert_int_equal(bm_checkpoint_list(directory, blocks, room, &n), BM_OK);
    return n;
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
    assert_int_equal(listed(scratch_file(&s, "no"), blocks, 10), 0);
    bm_checkpoint_prune(scratch_file(&s, "no"),
                        &(bm_retention){.last = INT64_MAX, .newest = 3});
    FOR_EACH (i, others)
        touch(&s, others[i]);
    assert_int_equal(listed(s.path, blocks, 10), 0);
    for (int64_t k = 0; k < 5; k++) {
        bm_checkpoint_path(s.path, (k * 3 % 5) * 50000000, path, sizeof path);
        spill(path, "", 0);
    }
    touch(&s, ".89abcdef.block-00000007.safetensors.tmp");
    assert_int_equal(listed(s.path, blocks, 10), 5);
    for (int64_t k = 0; k < 5; k++)
        assert_int_equal(blocks[k], (4 - k) * 50000000);
    assert_int_equal(listed(s.path, blocks, 2), 2);
    assert_int_equal(blocks[0], 200000000);
    assert_int_equal(blocks[1], 150000000);
    assert_int_equal(listed(s.path, blocks, 0), 0);

    bm_checkpoint_prune(s.path,
                        &(bm_retention){.last = INT64_MAX, .newest = 9});
    assert_int_equal(scratch_count(&s, false), 6 + 5);
    bm_checkpoint_prune(s.path,
                        &(bm_retention){.last = INT64_MAX, .newest = 3});
    assert_int_equal(listed(s.path, blocks, 10), 3);
    assert_int_equal(blocks[2], 100000000);
    bm_checkpoint_prune(s.path,
                        &(bm_retention){.last = INT64_MAX, .newest = 0});
    assert_int_equal(listed(s.path, blocks, 10), 1);
    assert_int_equal(blocks[0], 200000000);
    assert_int_equal(scratch_count(&s, false), 6 + 1);
    scratch_close(&s);
}

/* Those above are of no use to the run: it was resumed from an older one. */
static void test_newer_checkpoints_do_not_count(void **state)
{
    static const int64_t kept[] = {9, 8, 5, 4, 1};
    const int64_t more[] = {1};
    scratch s = scratch_open();
    int64_t blocks[10] = {0};
    char path[200];

    (void)state;
    for (int64_t k = 1; k < 10; k++) {
        bm_checkpoint_path(s.path, k, path, sizeof path);
        if (k < 6 || k > 7)
            spill(path, "", 0);
    }
    bm_checkpoint_prune(s.path, &(bm_retention){5, 2, more, 1});
    assert_int_equal(listed(s.path, blocks, 10), 5);
    FOR_EACH (i, kept)
        assert_int_equal(blocks[i], kept[i]);
    bm_checkpoint_prune(s.path, &(bm_retention){5, 0, NULL, 0});
    assert_int_equal(listed(s.path, blocks, 10), 3);
    assert_int_equal(blocks[2], 5);
    scratch_close(&s);
}

static void test_a_folder_that_cannot_be_listed_is_not_empty(void **state)
{
    scratch s = scratch_open();
    int64_t blocks[10] = {0};
    size_t n = 0;

    (void)state;
    touch(&s, "file");
    assert_int_equal(
        bm_checkpoint_list(scratch_file(&s, "file"), blocks, 10, &n),
        BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_message(), "cannot be listed"));
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_checkpoints_and_temporary_files_are_removed),
        cmocka_unit_test(test_newer_checkpoints_do_not_count),
        cmocka_unit_test(test_a_folder_that_cannot_be_listed_is_not_empty),
    };

    return RUN_GROUP("checkpoint_files", tests);
}
