/*
 * A shard gets its name only when it is complete and on the disk. Tested by the
 * order of fsync and rename, which the linker replaces by recording ones, and
 * by killing bmuf pack, which leaves shards but no data set.
 */
#include "core/rng.h"
#include "io/inspect/check.h"
#include "tests/support/command.h"
#include "tests/support/datasets.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/support.h"

#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the order of calls ------------------------------------------------- */

enum { MOST = 200 };

/* fsync of a file, or, with `to`, rename. */
typedef struct event {
    char path[100], to[100];
    off_t size; /* of the file */
    bool whole; /* the file is a shard that can be opened */
    bool taken; /* `to` existed already */
} event;

static event events[MOST];
static size_t n_events;
static bool noting;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static off_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? info.st_size : -1;
}

int __wrap_fsync(int fd)
{
    event *e = &events[n_events];
    char link[64];

    if (noting && n_events < MOST) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        assert_true(readlink(link, e->path, sizeof e->path - 1) > 0);
        e->size = size_of(e->path);
        n_events++;
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    event *e = &events[n_events];
    bm_shard *s = NULL;

    if (noting && n_events < MOST) {
        snprintf(e->path, sizeof e->path, "%s", from);
        snprintf(e->to, sizeof e->to, "%s", to);
        e->size = size_of(from);
        e->whole = bm_shard_open(&s, from) == BM_OK;
        e->taken = access(to, F_OK) == 0;
        bm_shard_close(s);
        n_events++;
    }
    return __real_rename(from, to);
}

static void test_a_shard_is_synced_before_it_is_renamed(void **_)
{
    char *directory = corpus_directory(), name[32];
    corpus c = corpus_make(directory, "set", 40);
    size_t shards = 0, renamed = 0;

    (void)_;
    c.settings.shard_mb = 0.002;
    noting = true;
    shards = corpus_write(&c);
    noting = false;
    assert_true(shards > 2 && n_events < MOST);
    for (size_t i = 0; i < n_events; i++) {
        const event *e = &events[i];

        if (e->to[0] == '\0')
            continue;
        snprintf(name, sizeof name, "set-%05zu.bmuf.h5", renamed++);
        assert_string_equal(e->to, corpus_path(directory, name));
        assert_true(e->whole && !e->taken);
        assert_true(i > 0 && i + 1 < n_events);
        assert_string_equal(events[i - 1].path, e->path);
        assert_string_equal(events[i - 1].to, "");
        assert_true(events[i - 1].size ==
                    e->size); /* nothing was written later */
        assert_string_equal(events[i + 1].path, directory);
        assert_string_equal(events[i + 1].to, "");
    }
    assert_int_equal(renamed, shards);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* ---- bmuf pack, killed --------------------------------------------------- */

enum { ROWS = 400, FRAMES = 40, D = 13, PER_SHARD = 10 };

static bm_rng chance;

/* Packs copies of the same features, in shards of ten sequences. */
static void make_manifest(void)
{
    static unsigned char mfc[4 + 4 * FRAMES * D] = {0, 0, FRAMES * D / 256,
                                                    FRAMES * D % 256};
    char *text = malloc(ROWS * 64);
    size_t n = 0;

    assert_non_null(text);
    write_bytes("x.mfc", mfc, sizeof mfc);
    for (int i = 0; i < ROWS; i++)
        n += (size_t)snprintf(
            text + n, 64,
            "{\"id\": \"%d\", \"feats\": \"x.mfc\", \"text\": \"ab\"}\n", i);
    write_text("x.jsonl", text);
    free(text);
}

static void start_packing(program *p, const char *out)
{
    program_start(
        p, (const char *const[]){"pack", "--features", "x.jsonl", "--out", out,
                                 "--set", "shard.unit_frames=400", "--set",
                                 "shard.shard_mb=0.001", "--force", NULL});
}

/* The number of files of a directory that match. */
static size_t files(const char *out, const char *pattern)
{
    char path[PATH_MAX];
    glob_t found = {0};
    size_t n = 0;

    snprintf(path, sizeof path, "%s/%s", in_folder(out), pattern);
    if (glob(path, 0, NULL, &found) == 0)
        n = found.gl_pathc;
    globfree(&found);
    return n;
}

/* Asserts that each shard can be read completely, and the data set only if all
 * are there; returns their number. */
static size_t assert_whole(const char *out)
{
    size_t n = files(out, "*.bmuf.h5"), problems = 0;
    size_t unfinished = files(out, ".*.bmuf.h5.tmp");
    bool whole = n == ROWS / PER_SHARD;
    bm_dataset *d = NULL;

    assert_true(unfinished <= 1);
    if (n == 0)
        return 0;
    assert_ok(bm_check_directory(in_folder(out), 1, 0, stderr, false, NULL,
                                 &problems));
    assert_int_equal(problems, unfinished + !whole);
    assert_int_equal(bm_dataset_open(&d, in_folder(out)),
                     whole ? BM_OK : BM_ERR_FORMAT);
    if (!whole) {
        assert_non_null(strstr(bm_last_error(), " are missing; copy them"));
        return n;
    }
    assert_int_equal(d->n_shards, n);
    assert_int_equal(d->n, n * PER_SHARD);
    bm_dataset_close(d);
    return n;
}

static void test_a_killed_packing_leaves_valid_shards_but_no_data_set(void **_)
{
    int kills = short_tests() ? 4 : 10;
    char out[16] = "", partial[16] = "";
    program p;

    (void)_;
    make_manifest();
    for (int i = 0; i < kills; i++) {
        size_t until = (size_t)i * (ROWS / PER_SHARD) / (size_t)kills;

        snprintf(out, sizeof out, "out-%d", i);
        start_packing(&p, out);
        while (program_runs(&p) && files(out, "*.bmuf.h5") < until)
            pause_for(0.0005);
        pause_for(0.02 * bm_rng_uniform(&chance));
        kill(p.pid, SIGKILL);
        program_wait(&p);
        print_message("killed with %zu shards and %zu unfinished\n",
                      assert_whole(out), files(out, ".*.tmp"));
        assert_true(files(out, "*.bmuf.h5") >= until);
        if (files(out, "*.bmuf.h5") < ROWS / PER_SHARD)
            snprintf(partial, sizeof partial, "%s", out);
    }
    assert_string_not_equal(partial, "");
    program_start(&p, (const char *const[]){
                          "pack", "--features", "x.jsonl", "--out", partial,
                          "--set", "shard.unit_frames=400", "--set",
                          "shard.shard_mb=0.001", "--resume", NULL});
    program_wait(&p);
    assert_ended(&p, 0);
    assert_int_equal(assert_whole(partial), ROWS / PER_SHARD);
    assert_int_equal(files(partial, ".*.tmp"), 0);
}

/* ---- going on ------------------------------------------------------------ */

/* 60 rows of which two cannot be read, in shards of ten. `swapped`: the first
 * two rows have changed places. */
static void make_short_manifest(bool swapped)
{
    char text[60 * 64];
    size_t n = 0;

    write_text("bad.mfc", "bad");
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"id\": \"%d\", \"feats\": \"%s.mfc\", "
                              "\"text\": \"ab\"}\n",
                              swapped && i < 2 ? 1 - i : i,
                              i == 7 || i == 33 ? "bad" : "x");
    write_text("y.jsonl", text);
}

#define PACK(out, ...)                                                         \
    BMUF("pack", "--features", "y.jsonl", "--out", out, "--set",               \
         "shard.unit_frames=400", "--set", "shard.shard_mb=0.001",             \
         "--max-left-out", "10", __VA_ARGS__)

/* Leaves the first shards of a set, as a packing does that is killed. */
static void keep_shards(const char *set, int n)
{
    char path[64];

    for (int k = n; k < 6; k++) {
        snprintf(path, sizeof path, "%s/data-%05d.bmuf.h5", set, k);
        assert_int_equal(unlink(in_folder(path)), 0);
    }
}

static void assert_same_sets(const char *one, const char *other)
{
    for (int k = 0; k < 6; k++) {
        char path[2][64];
        size_t size[2] = {0};
        char *bytes[2] = {NULL};

        snprintf(path[0], sizeof path[0], "%s/data-%05d.bmuf.h5", one, k);
        snprintf(path[1], sizeof path[1], "%s/data-%05d.bmuf.h5", other, k);
        for (int i = 0; i < 2; i++)
            bytes[i] = slurp(in_folder(path[i]), &size[i]);
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(bytes[0], bytes[1], size[0]);
        free(bytes[0]);
        free(bytes[1]);
    }
}

static void test_a_stopped_packing_goes_on(void **_)
{
    outcome o;

    (void)_;
    make_manifest();
    make_short_manifest(false);
    assert_code(PACK("whole", "--json"), 0);
    for (int left = 0; left < 6; left += 2) {
        assert_code(PACK("half", "--force"), 0);
        keep_shards("half", left);
        o = PACK("half", "--resume", "--json");
        assert_code(o, 0);
        assert_non_null(strstr(o.out, "\"sequences\": 58"));
        assert_non_null(strstr(o.out, "\"left_out\": 2"));
        assert_non_null(strstr(o.out, "\"shards\": 6"));
        assert_same_sets("whole", "half");
    }
}

static void test_a_set_that_is_complete_is_up_to_date(void **_)
{
    outcome o;

    (void)_;
    assert_code(PACK("half", "--force"), 0);
    o = PACK("half", "--resume");
    assert_code(o, 0);
    assert_string_equal(
        o.out, "half: up to date; 58 sequences, 2320 frames, 116 labels in 6 "
               "shards\n");
    o = PACK("half", "--resume", "--json");
    assert_code(o, 0);
    assert_non_null(strstr(o.out, "\"up_to_date\": true"));
    assert_non_null(strstr(o.out, "\"sequences\": 58"));
    assert_same_sets("whole", "half");
    assert_int_equal(access(in_folder("half/vocab.txt"), F_OK), 0);
}

static void test_a_complete_set_that_lacks_a_row_is_not_up_to_date(void **_)
{
    outcome o;
    size_t n = 0;
    char *text = slurp(in_folder("y.jsonl"), &n), more[60 * 64 + 100];

    (void)_;
    snprintf(more, sizeof more,
             "%s{\"id\": \"60\", \"feats\": \"bad.mfc\", \"text\": "
             "\"ab\"}\n",
             text);
    write_text("y.jsonl", more); /* cannot be read: left out */
    assert_code(PACK("half", "--resume"), 0);
    snprintf(more, sizeof more,
             "%s{\"id\": \"new\", \"feats\": \"x.mfc\", \"text\": "
             "\"ab\"}\n",
             text);
    write_text("y.jsonl", more);
    assert_fails(PACK("half", "--resume"), 73,
                 "half is complete, but lacks "
                 "'new'",
                 "--force");
    assert_same_sets("whole", "half");
    write_text("y.jsonl", text);
    o = PACK("half", "--resume", "--set", "features.deltas=1");
    assert_fails(o, 73, "features with other settings");
    assert_same_sets("whole", "half");
    assert_int_equal(access(in_folder("half/vocab.txt"), F_OK), 0);
    free(text);
}

static void test_a_packing_goes_on_only_as_it_began(void **_)
{
    outcome o;

    (void)_;
    keep_shards("half", 4);
    o = PACK("half", "--resume", "--set", "features.deltas=1");
    assert_code(o, 73);
    assert_non_null(strstr(o.err, "features with other settings"));
    o = PACK("half", "--resume", "--text", "none");
    assert_code(o, 73);
    assert_non_null(strstr(o.err, "normalised in another way"));
    make_short_manifest(true);
    for (int attempt = 0; attempt < 2; attempt++) {
        o = PACK("half", "--resume");
        assert_code(o, 65);
        assert_non_null(strstr(o.err, "does not have '"));
        assert_int_equal(files("half", "*.bmuf.h5"), 4);
    }
    o = PACK("half", "--resume", "--force");
    assert_code(o, 64);
}

/* Whether the set is complete or was stopped. */
static void test_a_packing_goes_on_with_shards_of_its_name_alone(void **_)
{
    bm_dataset *d = NULL;
    size_t size[2] = {0};
    char *vocab[2] = {NULL};

    (void)_;
    make_short_manifest(false);
    assert_code(PACK("named", "--force", "--name", "one"), 0);
    vocab[0] = slurp(in_folder("named/vocab.txt"), &size[0]);
    for (int pass = 0; pass < 2; pass++) {
        assert_fails(PACK("named", "--resume", "--name", "two"), 73,
                     "is not a shard of 'two'", "--name");
        assert_fails(PACK("named", "--resume", "--name", "on"), 73,
                     "is not a shard of 'on'");
        assert_int_equal(files("named", "*.bmuf.h5"), 6 - pass);
        vocab[1] = slurp(in_folder("named/vocab.txt"), &size[1]);
        assert_string_equal(vocab[0], vocab[1]);
        free(vocab[1]);
        if (pass == 0)
            assert_int_equal(unlink(in_folder("named/one-00005.bmuf.h5")), 0);
    }
    assert_code(PACK("named", "--resume", "--name", "one"), 0);
    assert_ok(bm_dataset_open(&d, in_folder("named")));
    assert_int_equal(d->n, 58);
    bm_dataset_close(d);
    free(vocab[0]);
}

/* All symbols that are unknown are in the first shard. */
static void test_a_packing_that_goes_on_counts_all_symbols(void **_)
{
    char text[60 * 64];
    size_t n = 0;
    outcome o;

    (void)_;
    write_text("v.txt", "<blank>\na\nb\n");
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"id\": \"%d\", \"feats\": \"x.mfc\", "
                              "\"text\": \"%s\"}\n",
                              i, i < 10 ? "a???" : "abab");
    write_text("y.jsonl", text);
    for (int left = 6; left >= 0; left -= 3) { /* 30 of 240 are 12.5 % */
        o = PACK("all", "--vocab", "v.txt", "--max-unknown", "13", "--json",
                 "--resume");
        assert_code(o, 0);
        assert_says(o.out, "\"unknown_symbols\": 30");
        keep_shards("all", left);
    }
    assert_code(PACK("all", "--vocab", "v.txt", "--max-unknown", "13"), 0);
    keep_shards("all", 3);
    assert_fails(
        PACK("all", "--vocab", "v.txt", "--max-unknown", "12", "--resume"), 65,
        "30 of 240 symbols");
}

static void test_a_packing_that_fails_keeps_what_was_there(void **_)
{
    char text[60 * 64];
    size_t n = 0;

    (void)_;
    make_short_manifest(false);
    assert_code(PACK("half", "--force"), 0);
    keep_shards("half", 3);
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"id\": \"%d\", \"feats\": \"%s.mfc\", "
                              "\"text\": \"ab\"}\n",
                              i, i == 7 || i > 45 ? "bad" : "x");
    write_text("y.jsonl", text);
    assert_fails(PACK("half", "--resume"), 65, "left out 15 of 60");
    assert_int_equal(files("half", "*.bmuf.h5"), 3);
}

static void test_a_run_gets_no_shards(void **_)
{
    (void)_;
    make_short_manifest(false);
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    write_text("run/journal.jsonl", "");
    assert_fails(PACK("run", "--force"), 73, "run is a run", "another folder");
    assert_int_equal(files("run", "*.bmuf.h5"), 0);
}

/* Rows 0 to 42 are in the first four shards, and no row behind them can be read:
 * the fifth would stay as it was, and no shard would be the last one. */
static void test_a_last_shard_that_can_be_made_no_more_is_a_failure(void **_)
{
    char text[60 * 64];
    size_t n = 0;

    (void)_;
    make_short_manifest(false);
    assert_code(PACK("half", "--force"), 0);
    keep_shards("half", 5);
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"id\": \"%d\", \"feats\": \"%s.mfc\", "
                              "\"text\": \"ab\"}\n",
                              i, i == 7 || i == 33 || i >= 42 ? "bad" : "x");
    write_text("y.jsonl", text);
    assert_fails(BMUF("pack", "--features", "y.jsonl", "--out", "half", "--set",
                      "shard.unit_frames=400", "--set", "shard.shard_mb=0.001",
                      "--max-left-out", "50", "--resume"),
                 65, "sequences after the first 40", "--force");
    assert_int_equal(files("half", "*.bmuf.h5"), 5);
}

static int prepare(void **state)
{
    chance = bm_rng_make(seed_of_the_day(), "kills", 0);
    return folder_make(state);
}

static int tidy(void **state)
{
    programs_end(state);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shard_is_synced_before_it_is_renamed),
        cmocka_unit_test(
            test_a_killed_packing_leaves_valid_shards_but_no_data_set),
        cmocka_unit_test(test_a_stopped_packing_goes_on),
        cmocka_unit_test(test_a_set_that_is_complete_is_up_to_date),
        cmocka_unit_test(
            test_a_complete_set_that_lacks_a_row_is_not_up_to_date),
        cmocka_unit_test(test_a_packing_goes_on_only_as_it_began),
        cmocka_unit_test(test_a_packing_goes_on_with_shards_of_its_name_alone),
        cmocka_unit_test(test_a_packing_that_goes_on_counts_all_symbols),
        cmocka_unit_test(test_a_packing_that_fails_keeps_what_was_there),
        cmocka_unit_test(test_a_run_gets_no_shards),
        cmocka_unit_test(
            test_a_last_shard_that_can_be_made_no_more_is_a_failure),
    };

    return cmocka_run_group_tests_name("pack", tests, prepare, tidy);
}
