/*
 * Packing by the ranks of a job: the bytes of one process, whatever the number of
 * ranks, also behind shards that a job has left that lost a rank.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- sets ---------------------------------------------------------------- */

/* The number of shards. */
static size_t shards_of(const char *set)
{
    char path[PATH_MAX];
    glob_t found = {0};
    size_t n = 0;

    snprintf(path, sizeof path, "%s/*.bmuf.h5", in_folder(set));
    if (glob(path, 0, NULL, &found) == 0)
        n = found.gl_pathc;
    globfree(&found);
    return n;
}

static void assert_same_file(const char *one, const char *other,
                             const char *name)
{
    const char *const sets[] = {one, other};
    char path[PATH_MAX], *bytes[2] = {NULL};
    size_t size[2] = {0};

    FOR_EACH (i, sets) {
        snprintf(path, sizeof path, "%s/%s", sets[i], name);
        bytes[i] = slurp(in_folder(path), &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* All shards and the vocabulary. */
static void assert_same_sets(const char *one, const char *other)
{
    size_t n = shards_of(one);

    assert_true(n > 1);
    assert_int_equal(shards_of(other), n);
    assert_same_file(one, other, "vocab.txt");
    for (size_t k = 0; k < n; k++) {
        char name[64];

        snprintf(name, sizeof name, "data-%05zu.bmuf.h5", k);
        assert_same_file(one, other, name);
    }
}

/* ---- any number of ranks ------------------------------------------------- */

/* With random numbers, sums over all recordings, and one of 23 that cannot be
 * read. */
#define PACK(out, norm, ...)                                                   \
    BMUF("pack", "--audio", "team.jsonl", "--out", out, "--set", norm,         \
         "--set", "features.dither=1", "--set", "features.deltas=1", "--set",  \
         "copies.count=1", "--set", "copies.noise=white", "--set",             \
         "shard.unit_frames=50", "--set", "shard.shard_mb=0.05",               \
         "--max-left-out", "5", "--force", __VA_ARGS__)

static void make_team(void)
{
    make_speech("team", 23);
    write_text("team-7.wav", "no sound");
}

static void test_ranks_do_not_change_a_byte(void **_)
{
    static const char *const norms[] = {"features.normalise=global",
                                        "features.normalise=speaker",
                                        "features.normalise=utterance"};

    (void)_;
    make_team();
    FOR_EACH (k, norms) {
        int least = k == 0 ? 1 : 3, most = k == 0 ? 4 : 3;
        outcome alone = PACK("one", norms[k], "--threads", "1");

        assert_code(alone, 0);
        for (int n = least; n <= most; n++) {
            char ranks[16];

            snprintf(ranks, sizeof ranks, "%d", n);
            assert_code(PACK("more", norms[k], "--threads", "2", "-n", ranks),
                        0);
            assert_same_sets("one", "more");
        }
    }
}

#define PACK_ON(out, ...)                                                      \
    BMUF("pack", "--audio", "team.jsonl", "--out", out, "--set",               \
         "shard.unit_frames=50", "--set", "shard.shard_mb=0.1",                \
         "--max-left-out", "5", __VA_ARGS__)

/* Also behind shards that are there; and not with other settings. */
static void test_samples_are_the_same_from_any_rank(void **_)
{
    size_t n = 0;
    char path[64];

    (void)_;
    make_team();
    assert_code(PACK_ON("one", "--force", "--threads", "1", "--set",
                        "shard.samples=yes"),
                0);
    assert_code(
        PACK_ON("more", "--force", "-n", "3", "--set", "shard.samples=yes"), 0);
    assert_same_sets("one", "more");
    for (n = shards_of("more"); n > 2; n--) {
        snprintf(path, sizeof path, "more/data-%05zu.bmuf.h5", n - 1);
        assert_int_equal(unlink(in_folder(path)), 0);
    }
    assert_fails(PACK_ON("more", "--resume"), 73, "has another shard.samples");
    assert_code(
        PACK_ON("more", "--resume", "-n", "2", "--set", "shard.samples=yes"),
        0);
    assert_same_sets("one", "more");
    assert_code(PACK_ON("one", "--force", "--threads", "1", "--set",
                        "shard.samples=yes", "--set",
                        "features.normalise=speaker"),
                0);
    assert_code(PACK_ON("more", "--force", "-n", "3", "--set",
                        "shard.samples=yes", "--set",
                        "features.normalise=speaker"),
                0);
    assert_same_sets("one", "more");
    write_text("x.mfc", "");
    write_text("few.jsonl", "{\"id\": \"1\", \"feats\": \"x.mfc\"}\n");
    assert_fails(BMUF("pack", "--features", "few.jsonl", "--out", "new",
                      "--set", "shard.samples=yes"),
                 78, "few.jsonl has no recordings");
}

static void test_what_is_left_out_is_told_once(void **_)
{
    outcome alone, o;

    (void)_;
    make_team();
    alone = PACK("one", "features.mels=8", "--json");
    o = PACK("one", "features.mels=8", "--json", "-n", "3");
    assert_code(o, 0);
    assert_string_equal(o.out, alone.out);
    assert_says(o.out, "\"not a recording\": 2"); /* and its copy */
    assert_int_equal(count_of(o.err, "left out team-7: "), 1);
    assert_int_equal(count_of(o.err, "left out team-7-copy1: "), 1);
}

static void test_ranks_of_a_launcher_pack_one_set(void **_)
{
    (void)_;
    make_team();
    assert_code(PACK("one", "features.mels=8", "--threads", "1"), 0);
    assert_code(
        BMUF_ON(3, "pack", "--audio", "team.jsonl", "--out", "more", "--set",
                "features.mels=8", "--set", "features.dither=1", "--set",
                "features.deltas=1", "--set", "copies.count=1", "--set",
                "copies.noise=white", "--set", "shard.unit_frames=50", "--set",
                "shard.shard_mb=0.05", "--max-left-out", "5", "--force"),
        0);
    assert_same_sets("one", "more");
}

/* ---- what all ranks, or none, can do ------------------------------------- */

static void test_a_fault_of_all_ranks_is_told_once(void **_)
{
    (void)_;
    make_team();
    assert_fails(
        BMUF("pack", "--audio", "none.jsonl", "--out", "new", "-n", "3"), 66,
        "none.jsonl: No such file");
    assert_fails(BMUF("pack", "--audio", "team.jsonl", "--out", "new", "-n",
                      "3", "--set", "features.mel=8"),
                 78, "features.mel is unknown");
    assert_fails(BMUF("pack", "--audio", "team.jsonl", "--out", "new", "-n",
                      "3", "--vocab", "none"),
                 66, "none");
    assert_code(PACK("one", "features.mels=8", "--threads", "1"), 0);
    assert_fails(
        BMUF("pack", "--audio", "team.jsonl", "--out", "one", "-n", "3"), 73,
        "one already has shards");
}

static void test_what_ranks_cannot_share_is_refused(void **_)
{
    (void)_;
    make_team();
    write_text("none.hdf", "");
    assert_fails(BMUF("pack", "--audio", "-", "--out", "new", "-n", "2"), 64,
                 "each rank reads the manifest");
    assert_fails(
        BMUF("pack", "--returnn", "none.hdf", "--out", "new", "-n", "2"), 64,
        "cannot be combined with --returnn");
    assert_fails(BMUF("pack", "--idx", "none", "--out", "new", "--hosts", "a"),
                 64, "cannot be combined with --idx");
}

/* ---- a job that ends too early ------------------------------------------- */

enum { ROWS = 2000, FRAMES = 40, D = 13 };

/* Copies of the same features, for shards of ten sequences. */
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

#define WORDS(out, ranks, how)                                                 \
    "pack", "--features", "x.jsonl", "--out", out, "--set",                    \
        "shard.unit_frames=400", "--set", "shard.shard_mb=0.001", "-n", ranks, \
        "--threads", "1", how

/* Starts three ranks, and waits until they have written some shards. */
static void start_packing(program *p)
{
    char path[64];

    for (size_t k = 0; k < ROWS / 10; k++) {
        snprintf(path, sizeof path, "half/data-%05zu.bmuf.h5", k);
        unlink(in_folder(path));
    }
    program_start(p,
                  (const char *const[]){WORDS("half", "3", "--force"), NULL});
    while (program_runs(p) && shards_of("half") < 3)
        pause_for(0.0005);
    assert_true(program_runs(p));
}

static void kill_rank(const program *p, int rank)
{
    pid_t all[FAMILY];
    size_t n = family(p, all), killed = 0;

    for (size_t i = 0; i < n; i++)
        if (rank_of(all[i]) == rank)
            killed += kill(all[i], SIGKILL) == 0;
    assert_int_equal(killed, 1);
}

static void assert_goes_on(void)
{
    size_t before = shards_of("half");
    outcome o;

    assert_true(before >= 1 && before < ROWS / 10);
    o = BMUF(WORDS("half", "2", "--resume"));
    assert_code(o, 0);
    assert_says(o.err, "resuming after ");
    assert_same_sets("whole", "half");
}

static void test_a_packing_that_lost_a_rank_goes_on(void **_)
{
    program p;

    (void)_;
    make_manifest();
    assert_code(BMUF(WORDS("whole", "1", "--force")), 0);
    for (int rank = 0; rank < 2; rank++) {
        char who[64];

        start_packing(&p);
        kill_rank(&p, rank);
        program_wait(&p);
        assert_ended(&p, 137);
        snprintf(who, sizeof who, "rank %d on ", rank);
        assert_int_equal(times_said(&p, "killed by signal 9"), 1);
        assert_said(&p, who);
        assert_said(&p, "the same command with --resume goes on");
        assert_goes_on();
    }
}

static void test_a_packing_that_was_stopped_goes_on(void **_)
{
    program p;

    (void)_;
    start_packing(&p);
    kill(p.pid, SIGTERM);
    program_wait(&p);
    assert_ended(&p, 75);
    assert_int_equal(times_said(&p, "stopped; the same command"), 1);
    assert_goes_on();
}

/* Rank 1 reads the second row, whose rate is known only then: in the pass for the
 * means, or while shards are packed. */
static void test_a_failure_of_one_rank_ends_the_job(void **_)
{
    static const char *const norms[] = {"features.normalise=global",
                                        "features.normalise=none"};
    char text[1000];

    (void)_;
    write_tone("low.wav", 8000, 1, 8000);
    write_tone("high.wav", 8000, 1, 16000);
    snprintf(text, sizeof text,
             "{\"id\": \"a\", \"audio\": \"cat %s |\"}\n"
             "{\"id\": \"b\", \"audio\": \"cat %s |\"}\n"
             "{\"id\": \"c\", \"audio\": \"low.wav\"}\n"
             "{\"id\": \"d\", \"audio\": \"low.wav\"}\n",
             in_folder("low.wav"), in_folder("high.wav"));
    write_text("rates.jsonl", text);
    FOR_EACH (k, norms) {
        assert_fails(BMUF("pack", "--audio", "rates.jsonl", "--out", "rates",
                          "--allow-pipes", "--set", norms[k], "-n", "3"),
                     65, " has 8000 Hz, but ", " has 16000 Hz");
        assert_int_equal(shards_of("rates"), 0);
    }
}

static int tidy(void **state)
{
    programs_end(state);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_do_not_change_a_byte),
        cmocka_unit_test(test_samples_are_the_same_from_any_rank),
        cmocka_unit_test(test_what_is_left_out_is_told_once),
        cmocka_unit_test(test_ranks_of_a_launcher_pack_one_set),
        cmocka_unit_test(test_a_fault_of_all_ranks_is_told_once),
        cmocka_unit_test(test_what_ranks_cannot_share_is_refused),
        cmocka_unit_test(test_a_packing_that_lost_a_rank_goes_on),
        cmocka_unit_test(test_a_packing_that_was_stopped_goes_on),
        cmocka_unit_test(test_a_failure_of_one_rank_ends_the_job),
    };

    return cmocka_run_group_tests_name("pack_ranks", tests, folder_make, tidy);
}
