/*
 * The command line: exit codes, one message per error, results on stdout and
 * messages on stderr.
 */
#include "cli/settings.h"
#include "cli/verbs.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_there(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

/* ---- help --------------------------------------------------------------- */

static void test_help_is_printed_to_stdout(void **_)
{
    static const char *const verbs[] = {"pack", "info",    "check",  "train",
                                        "eval", "explain", "options"};
    static const char *const words[] = {"-h", "--help", "help"};
    outcome o;

    (void)_;
    FOR_EACH (i, words) {
        o = BMUF(words[i]);
        assert_code(o, 0);
        assert_string_equal(o.err, "");
        FOR_EACH (k, verbs)
            assert_says(o.out, verbs[k]);
    }
    FOR_EACH (i, verbs) {
        o = BMUF(verbs[i], "--help");
        assert_code(o, 0);
        assert_string_equal(o.err, "");
        assert_says(o.out, verbs[i]);
        assert_says(o.out, "Exit codes: 0 success, 64 usage");
        o = BMUF(verbs[i], "-h");
        assert_code(o, 0);
        assert_null(strstr(o.out, "Exit codes"));
    }
}

/* The widest line is 80 columns. */
static void test_help_fits_a_terminal(void **_)
{
    (void)_;
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++) {
        outcome o = BMUF("help", (*v)->name);

        assert_code(o, 0);
        for (const char *line = o.out; *line != '\0';
             line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > 80)
                fail_msg("bmuf help %s: %.100s", (*v)->name, line);
    }
}

static void test_every_option_of_a_verb_is_in_its_help(void **_)
{
    outcome o = BMUF("train", "--help");

    (void)_;
    assert_says(o.out, "-o, --out RUN");
    assert_says(o.out, "-n, --ranks RANKS");
    assert_says(o.out, "--set SECTION.KEY=VALUE");
    assert_says(o.out, "--dry-run");
    assert_says(o.out, "-q, --quiet");
    assert_says(o.out, "-v, --verbose");
    assert_says(o.out, "--color auto|always|never");
}

static void test_version_lists_the_libraries(void **_)
{
    outcome o = BMUF("--version");

    (void)_;
    assert_code(o, 0);
    assert_string_equal(o.err, "");
    assert_true(strncmp(o.out, "bmuf 0.", 7) == 0);
    assert_says(o.out, "\nMPI ");
    assert_says(o.out, "\nBLAS ");
    assert_says(o.out, "\noneDNN ");
    assert_says(o.out, "\nHDF5 ");
}

/* Prints the same as the other command, on stdout, and succeeds. */
static void assert_same_output(outcome o, outcome other)
{
    assert_code(o, 0);
    assert_string_equal(o.out, other.out);
    assert_string_equal(o.err, "");
}

/* No line is wider than a terminal of 100 columns. */
static void assert_narrow(const char *text)
{
    for (size_t n = 0; *text != '\0'; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n > 100)
            fail_msg("%zu columns: %.*s", n, (int)n, text);
    }
}

static void test_help_and_version_have_several_names(void **_)
{
    json_t *json = parse_json(BMUF("version", "--json").out);
    outcome o;

    (void)_;
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++)
        assert_same_output(BMUF("help", (*v)->name),
                           BMUF((*v)->name, "--help"));
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++)
        assert_narrow(BMUF((*v)->name, "-h").out);
    o = BMUF("version");
    assert_same_output(BMUF("-V"), o);
    assert_same_output(BMUF("--version"), o);
    assert_says(o.out, text(json, "version"));
    assert_says(o.out, text(json, "blas"));
    assert_says(o.out, text(json, "hdf5"));
    assert_says(o.out, text(json, "loops"));
    json_decref(json);
    assert_fails(BMUF("help", "trian"), 64, "did you mean train?");
    assert_fails(BMUF("evaluate"), 64, "did you mean eval?");
}

/* Nothing is near: no suggestion. */
static void test_far_words_get_no_suggestion(void **_)
{
    outcome outcomes[] = {
        BMUF("decode"),
        BMUF("forward"),
        BMUF("train", "x", "--beam-width"),
        BMUF("options", "xyzzy"),
        BMUF("train", "tiny.ini", "--set", "train.beam_width=3"),
        BMUF("train", "tiny.ini", "--set", "decoder.beam=3")};

    (void)_;
    FOR_EACH (i, outcomes) {
        assert_int_not_equal(outcomes[i].code, 0);
        assert_null(strstr(outcomes[i].err, "did you mean"));
        assert_null(strstr(outcomes[i].err, "nearest"));
    }
    assert_says(outcomes[4].err, "[train] has: strategy epochs ");
    assert_says(outcomes[5].err, "the sections are: data model train ");
}

static void test_options_of_a_section_or_key_are_printed(void **_)
{
    outcome o = BMUF("options", "bmuf");
    json_t *json = NULL, *first = NULL;

    (void)_;
    assert_code(o, 0);
    assert_int_equal(strncmp(o.out, "[bmuf]\n  momentum = auto\n", 25), 0);
    assert_int_equal(count_of(o.out, "["), 1);
    o = BMUF("options", "sgd.momentum");
    assert_says(o.out, "[sgd]\n  momentum = ");
    assert_says(o.out,
                "applies only with sgd.update = momentum,muon,rmsprop\n");
    assert_int_equal(count_of(o.out, " = "), 2);
    o = BMUF("options", "momentum");
    assert_says(o.out, "[sgd]\n  momentum = ");
    assert_says(o.out, "[bmuf]\n  momentum = ");
    o = BMUF("options", "mels"); /* of bmuf pack */
    assert_says(o.out, "bmuf pack --audio");
    assert_says(o.out, "[features]\n  mels = 40\n");
    assert_int_equal(count_of(BMUF("options", "shard").out, "unit_frames"), 1);
    assert_fails(BMUF("options", "bmfu"), 64, "no section or setting 'bmfu'",
                 "did you mean bmuf?");
    assert_fails(BMUF("options", "job.devise"), 64, "did you mean job.device?");
    assert_fails(BMUF("options", "--pack", "sgd.momentum"), 64,
                 "sgd.momentum is a setting of another verb than bmuf pack");
    json = parse_json(BMUF("options", "job.device", "--json").out);
    assert_int_equal(json_array_size(json_object_get(json, "settings")), 1);
    first = json_array_get(json_object_get(json, "settings"), 0);
    assert_string_equal(text(first, "section"), "job");
    assert_string_equal(text(first, "key"), "device");
    assert_string_equal(text(first, "default"), "auto");
    assert_int_equal(json_array_size(json_object_get(first, "words")), 3);
    json_decref(json);
}

/* Is there a line `.B "name.."`? */
static void assert_entry(const char *page, const char *format, const char *name)
{
    char words[120], line[160];

    snprintf(words, sizeof words, format, name);
    snprintf(line, sizeof line, "\n.B \"%s", words);
    for (char *c = line; (c = strchr(c, '-')) != NULL; c += 2) {
        memmove(c + 1, c, strlen(c) + 1); /* roff: \- */
        *c = '\\';
    }
    assert_says(page, line);
}

static void test_manual_pages_have_all_verbs_options_and_settings(void **_)
{
    char *whole = strdup(BMUF("man").out);
    char *settings = strdup(BMUF("man", "settings").out);

    (void)_;
    assert_true(whole != NULL && settings != NULL);
    for (const bm_verb *const *v = bm_verb_list(); *v != NULL; v++) {
        outcome one = BMUF("man", (*v)->name);

        assert_code(one, 0);
        assert_entry(whole, "bmuf %s [OPTION]...", (*v)->name);
        assert_entry(one.out, "bmuf %s [OPTION]...", (*v)->name);
        for (const bm_flag *f = (*v)->flags; f->name != NULL; f++)
            if (f->letter == 0) {
                assert_entry(whole, "--%s", f->name);
                assert_entry(one.out, "--%s", f->name);
            } else {
                assert_says(one.out, f->help);
            }
    }
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            assert_entry(settings, "%s = ", o->key);
    assert_entry(settings, "%s = 40", "mels");
    assert_says(
        whole,
        ".B 128+n\nsignal n, to the program or to a rank that was lost\n");
    assert_fails(BMUF("man", "trian"), 64, "did you mean train?");
    free(whole);
    free(settings);
}

static void test_manual_pages_are_written_to_a_directory(void **_)
{
    static const char *const pages[] = {
        "manual/man1/bmuf.1", "manual/man1/bmuf-train.1", "manual/man5/bmuf.5"};

    (void)_;
    assert_code(BMUF("man", "--out", "manual"), 0);
    FOR_EACH (i, pages)
        assert_true(is_there(pages[i]));
}

static void test_options_are_listed_with_their_defaults(void **_)
{
    outcome o = BMUF("options");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "[bmuf]\n  momentum = auto\n");
    assert_says(o.out, "  train = <required>\n");
    assert_null(strstr(o.out, "[features]"));
    o = BMUF("options", "--pack");
    assert_says(o.out, "[features]");
    assert_says(o.out, "  mels = 40\n");
    assert_null(strstr(o.out, "[bmuf]"));
}

static void test_a_closed_pipe_is_no_failure(void **_)
{
    outcome o = command_run(&(command){
        .words = (const char *const[]){"options", NULL}, .deaf = true});

    (void)_;
    assert_code(o, 0);
    assert_string_equal(o.err, "");
}

static void test_unwritable_results_are_a_failure(void **_)
{
    outcome o = command_run(&(command){
        .words = (const char *const[]){"options", NULL}, .out = "/dev/full"});

    (void)_;
    assert_fails(o, 74, "stdout", "No space left");
}

/* ---- wrong usage -------------------------------------------------------- */

static void test_unknown_words_suggest_the_nearest(void **_)
{
    (void)_;
    assert_fails(BMUF("trian"), 64, "unknown verb 'trian'",
                 "did you mean train?");
    assert_fails(BMUF("train", "tiny.ini", "--ouy", "x"), 64,
                 "train: ", "unknown option --ouy", "did you mean --out;",
                 "bmuf train --help");
    assert_fails(BMUF("eval", "m", "d", "-x"), 64,
                 "eval: ", "unknown option -x");
    assert_fails(BMUF("train", "tiny.ini", "--output", "x"), 64,
                 "did you mean --out;");
    assert_fails(BMUF("train", "tiny.ini", "-out", "x"), 64,
                 "unknown option -out; did you mean --out;");
    assert_fails(BMUF("train", "tiny.ini", "-out=x"), 64,
                 "unknown option -out=x; did you mean --out;");
    assert_fails(BMUF("-q", "train"), 64, "-q: options come after the verb");
}

static void test_names_of_other_programs_are_known(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "tiny.ini", "-np", "4"), 64,
                 "unknown option -np; give -n N");
    assert_fails(BMUF("train", "tiny.ini", "--nproc", "4"), 64,
                 "unknown option --nproc; give -n N");
    assert_fails(BMUF("train", "tiny.ini", "--schedule.patience=4"), 64,
                 "did you mean --set schedule.patience=VALUE");
    assert_fails(BMUF("train", "tiny.ini", "--lr", "0.1"), 64,
                 "did you mean --set train.rate=VALUE");
    assert_fails(BMUF("train", "tiny.ini", "--train.epochs=3"), 64,
                 "did you mean --set train.epochs=VALUE");
    assert_fails(BMUF("train", "--config", "tiny.ini"), 64,
                 "CONFIG is given without an option");
    assert_fails(BMUF("train", "tiny.ini", "--resume"), 64,
                 "the same --out resumes the run");
    assert_fails(BMUF("pack", "--audio", "a", "--out", "b", "--n-mels", "80"),
                 64, "did you mean --set features.mels=VALUE");
    assert_fails(BMUF("options", "train.lr"), 64, "did you mean train.rate?");
    assert_fails(BMUF("train", "tiny.ini", "--workers", "8"), 64,
                 "did you mean --set job.workers=VALUE");
    assert_fails(BMUF("train", "tiny.ini", "--num-workers=8"), 64,
                 "a thread of each rank reads ahead");
    /* a key of several sections */
    assert_fails(BMUF("train", "tiny.ini", "--momentum", "0"), 64,
                 "unknown option --momentum; see");
}

static void test_nouns_are_counted(void **_)
{
    outcome nothing = BMUF(NULL);
    const char *many[67] = {"score"};

    (void)_;
    assert_fails(nothing, 64, "bmuf --help");
    assert_fails(BMUF("train"), 64, "train needs CONFIG", "--help");
    assert_fails(BMUF("eval", "m"), 64, "eval needs MODEL|RUN DIR");
    assert_fails(BMUF("train", "a", "b"), 64, "unexpected argument 'b'",
                 "bmuf train CONFIG");
    assert_fails(BMUF("version", "b"), 64, "unexpected argument 'b'");
    for (int i = 1; i <= 65; i++)
        many[i] = "r";
    assert_fails(command_run(&(command){.words = many}), 64,
                 "score takes at most 64 of ");
    assert_fails(BMUF("pack", "--audio", "m"), 64, "pack needs --out DIR");
    assert_fails(BMUF("pack", "--out", "d"), 64,
                 "pack needs a FILE after one of --audio");
    assert_fails(BMUF("pack", "--out", "d", "--audio", "m", "--images", "m"),
                 64, "--audio and --images");
}

static void test_values_of_options_are_checked(void **_)
{
    static const char *const ranks[] = {"0", "-1", "two", "2.5", "", "4x"};

    (void)_;
    FOR_EACH (i, ranks)
        assert_fails(BMUF("train", "tiny.ini", "-n", ranks[i]), 64, "--ranks",
                     "not an integer in [1, ");
    assert_fails(BMUF("train", "tiny.ini", "-n"), 64, "--ranks needs a value");
    assert_fails(BMUF("train", "tiny.ini", "--dry-run=yes"), 64,
                 "--dry-run takes no value");
    assert_fails(BMUF("train", "tiny.ini", "-qn", "2"), 64,
                 "-qn: short options cannot be joined; write them one by one, "
                 "as -q -n");
    assert_fails(BMUF("eval", "", "train"), 64,
                 "eval: argument 1 is empty; is a variable of the shell not "
                 "set?");
    assert_fails(BMUF("train", "tiny.ini", "--out=a", "-ob"), 64,
                 "--out is given twice");
    assert_fails(BMUF("check", "train", "--stride", "0"), 64, "--stride 0");
    assert_fails(BMUF("check", "train", "--limit", "-1"), 64, "--limit -1");
    assert_fails(BMUF("train", "tiny.ini", "--set", "epochs"), 64,
                 "'epochs' is not of the form section.key=value");
    assert_fails(BMUF("pack", "--audio", "train.jsonl", "--out", "d", "--units",
                      "letters"),
                 64, "--units letters");
    assert_fails(BMUF("options", "--color", "sometimes"), 64,
                 "--color sometimes is not one of: auto always never");
    assert_fails(BMUF("options", "-q", "-v"), 64, "--quiet and --verbose");
}

static void test_options_have_several_spellings(void **_)
{
    (void)_;
    assert_code(BMUF("train", "--dry_run", "--set=train.epochs=4", "-n2",
                     "--out=nowhere", "--", "tiny.ini"),
                0);
    assert_false(is_there("nowhere"));
    assert_fails(BMUF("info", "--", "--json"), 66, "--json: ");
}

/* ---- missing, existing, unwritable -------------------------------------- */

static void test_missing_inputs_are_named(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "no.ini"), 66, "no.ini: No such file");
    assert_fails(BMUF("check", "nowhere"), 66, "nowhere");
    assert_fails(BMUF("info", "nowhere"), 66, "nowhere");
    assert_fails(BMUF("pack", "--audio", "no.jsonl", "--out", "d"), 66,
                 "no.jsonl");
    assert_fails(BMUF("pack", "--audio", "test.jsonl", "--out", "d", "--vocab",
                      "no.txt"),
                 66, "no.txt");
    assert_fails(BMUF("eval", "no.safetensors", "test"), 66, "no.safetensors");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "data.train=nowhere"), 66,
                 "nowhere: No such file or directory below /",
                 "where bmuf was started");
    assert_fails(
        BMUF("train", "tiny.ini", "--set", "data.train=nowhere", "--out", "r"),
        66, "nowhere");
    assert_fails(
        BMUF("train", "tiny.ini", "--set", "data.train=empty", "--out", "r"),
        66, "empty", "bmuf pack");
    assert_false(is_there("r"));
}

static void test_existing_files_are_not_overwritten(void **_)
{
    (void)_;
    assert_fails(BMUF("pack", "--audio", "test.jsonl", "--out", "train"), 73,
                 "train already has shards", "--force");
    assert_fails(BMUF("train", "tiny.ini", "--out", "foreign"), 73,
                 "foreign has files in it", "another --out");
    assert_fails(BMUF("train", "tiny.ini", "--out", "tiny.ini"), 73, "tiny.ini",
                 "is not a folder");
    assert_fails(BMUF("pack", "--audio", "test.jsonl", "--out", "tiny.ini"), 73,
                 "tiny.ini");
}

static void test_a_full_disk_is_reported_and_leaves_nothing(void **_)
{
    static const char *const words[] = {"pack",  "--audio", "train.jsonl",
                                        "--out", "full",    NULL};
    outcome o = command_run(&(command){.words = words, .file_bytes = 20000});

    (void)_;
    assert_fails(o, 74, "full/", "File too large");
    assert_int_equal(rmdir(in_folder("full")), 0);
}

static void test_missing_memory_is_reported(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "tiny.ini", "--out", "r", "--set",
                      "model.net=linear:1000000 linear:1000000 linear"),
                 71, "weights and their gradient need ");
    assert_false(is_there("r"));
}

/* OpenBLAS and MPI would hang or crash. Sanitizers need all address space. */
static void test_missing_address_space_is_reported(void **_)
{
    static const char *const words[] = {"bench", "--quick", "--only", "ctc",
                                        NULL};
    static const char *const verbs[][8] = {
        {"version"},
        {"check", "data"},
        {"train", "tiny.ini", "-n", "2", "--set", "job.workers=2"}};
    static const long mb[] = {200, 250, 300};

    (void)_;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    FOR_EACH (i, mb)
        assert_fails(command_run(&(command){.words = words,
                                            .address_bytes = mb[i] << 20}),
                     71, "MB of address space; raise the limit");
    FOR_EACH (i, verbs)
        assert_fails(command_run(&(command){.words = verbs[i],
                                            .address_bytes = 200L << 20}),
                     71, "MB of address space; raise the limit");
}

/* ---- bad data ----------------------------------------------------------- */

static void flip_a_byte(const char *name, double where)
{
    FILE *file = fopen(in_folder(name), "r+b");
    int byte = 0;
    long size = 0;

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    assert_int_equal(fseek(file, (long)(where * (double)size), SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    assert_int_equal(fputc(byte ^ 0x55, file), byte ^ 0x55);
    assert_int_equal(fclose(file), 0);
}

static void pack(const char *out, const char *mels)
{
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", out, "--set",
                     mels, "--set", "shard.unit_frames=100", "--set",
                     "shard.shard_mb=0.01"),
                0);
}

static void test_a_damaged_shard_is_found_by_check_and_by_train(void **_)
{
    static const char message[] =
        "damaged/data-00001.bmuf.h5: the features of unit";
    outcome o;

    (void)_;
    pack("damaged", "features.mels=8");
    assert_code(BMUF("check", "damaged"), 0);
    flip_a_byte("damaged/data-00001.bmuf.h5", 0.5);
    o = BMUF("check", "damaged");
    assert_code(o, 65);
    assert_says(o.out, message);
    assert_says(o.out, ": 1 problem");
    assert_says(o.err, "bmuf: damaged: 1 problem");
    o = BMUF("train", "tiny.ini", "--out", "r1", "--set", "data.train=damaged");
    assert_fails(o, 65, message, "checksum");
    o = BMUF("train", "tiny.ini", "--out", "r2", "--set", "data.train=damaged",
             "-n", "2");
    assert_fails(o, 65, message, "bmuf: rank ");
}

static void test_check_lists_all_problems(void **_)
{
    outcome o;

    (void)_;
    pack("broken", "features.mels=8");
    flip_a_byte("broken/data-00000.bmuf.h5", 0.5);
    assert_int_equal(truncate(in_folder("broken/data-00002.bmuf.h5"), 3000), 0);
    write_text("broken/.01234567.data-00009.bmuf.h5.tmp", "half");
    o = BMUF("check", "broken");
    assert_code(o, 65);
    assert_says(o.out, "broken/data-00000.bmuf.h5: the features of unit");
    assert_says(o.out, "broken/data-00002.bmuf.h5: ");
    assert_says(o.out, "broken/.01234567.data-00009.bmuf.h5.tmp: ");
    assert_says(o.out, ": 3 problems");
    o = BMUF("check", "broken", "--stride", "100");
    assert_code(o, 65);
    assert_true(count_of(o.out, " frames, but ") > 10);
    o = BMUF("check", "broken", "--stride", "100", "--limit", "2");
    assert_code(o, 65);
    assert_int_equal(count_of(o.out, " frames, but "), 2);
    assert_says(o.out, " more sequences too short for CTC\n");
    assert_says(o.out, "damaged units or tables: 1\n");
}

static void test_data_that_do_not_fit_the_training_data_are_rejected(void **_)
{
    static const char *const verbs[] = {"train", "explain"};

    (void)_;
    pack("wide", "features.mels=9");
    assert_code(BMUF("pack", "--audio", "other.jsonl", "--out", "other",
                     "--set", "features.mels=8"),
                0);
    FOR_EACH (i, verbs) {
        outcome o = BMUF(verbs[i], "tiny.ini", "--set", "data.test=wide");

        assert_code(o, 65);
        assert_says(o.err, "wide has other features than data.train (train) (9 "
                           "in a frame, not 8):");
        assert_says(o.err, "features.mels is 9, should be 8");
        o = BMUF(verbs[i], "tiny.ini", "--set", "data.test=other");
        assert_code(o, 65);
        assert_says(o.err, "other has ");
        assert_says(o.err, "pack it with --vocab train\n");
    }
    assert_false(is_there("run"));
}

/* ---- runs that do not start ---------------------------------------------- */

/* With a run directory, the corrected net would be rejected as changed. */
static void test_an_invalid_net_leaves_no_run(void **_)
{
    outcome o = BMUF("train", "tiny.ini", "--out", "r3", "--set",
                     "model.net=blsmt:8 linear");

    (void)_;
    assert_fails(o, 78, "model.net: word 1", "blsmt:8", "nearest is blstm");
    assert_false(is_there("r3"));
}

/* Also sizes that depend on the data are named with their place. */
static void test_a_net_that_does_not_fit_the_data_is_located(void **_)
{
    static const char *const verbs[] = {"explain", "train"};

    (void)_;
    FOR_EACH (i, verbs) {
        outcome o = BMUF(verbs[i], "tiny.ini", "--set", "model.net=linear:10");

        assert_code(o, 78);
        assert_says(o.err, "command line: model.net: word 1 'linear:10': the "
                           "last layer has 10 outputs");
    }
    assert_false(is_there("run"));
}

static void test_a_dry_run_ends_as_the_run_would(void **_)
{
    outcome o = BMUF("train", "tiny.ini", "--dry-run", "--out", "foreign");

    (void)_;
    assert_code(o, 73);
    assert_says(o.err, "foreign has files in it");
    o = BMUF("train", "tiny.ini", "--dry-run", "--set",
             "block.frames_total=100000");
    assert_code(o, 0);
    assert_says(o.out, "an epoch is one block");
    o = BMUF("train", "tiny.ini", "--dry-run");
    assert_code(o, 0);
    assert_string_equal(o.err, "");
    assert_false(is_there("run"));
}

/* ---- ranks -------------------------------------------------------------- */

static void test_a_supervisor_that_cannot_start_is_reported(void **_)
{
    const char *before = getenv("TMPDIR");
    char kept[400];
    outcome o;

    (void)_;
    snprintf(kept, sizeof kept, "%s", before != NULL ? before : "/tmp");
    setenv("TMPDIR", "no/such/folder", 1);
    o = BMUF("train", "tiny.ini", "-n", "2", "--out", "nowhere");
    setenv("TMPDIR", kept, 1);
    assert_fails(o, 73, "no/such/folder");
}

/* All ranks find these errors; one of them reports. */
static void test_ranks_report_an_error_once(void **_)
{
    (void)_;
    assert_fails(BMUF_ON(2, "trian"), 64, "did you mean train?");
    assert_fails(BMUF_ON(2, "train", "tiny.ini", "--set", "train.epoch=1",
                         "--set", "train.rate=x"),
                 78, "2 invalid settings");
    assert_fails(BMUF_ON(2, "train", "tiny.ini", "--out", "foreign"), 73,
                 "rank 0: foreign has files in it");
    assert_fails(BMUF_ON(3, "train", "tiny.ini"), 78,
                 "3 ranks, but job.workers = ");
    assert_fails(BMUF("train", "tiny.ini", "-n", "2", "--set",
                      "job.precision=tf32", "--set", "job.device=cpu"),
                 78, "precision tf32 is not available on the CPU");
    assert_fails(BMUF("eval", "m", "test", "-n", "2", "--dump", "x.npz"), 64,
                 "--dump needs a single rank");
}

/* Warnings that all ranks would have. */
static void test_ranks_warn_once(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("train", "tiny.ini", "-n", "2", "--out", "r4", "--set",
             "train.epochs=1", "--set", "sgd.momentum=0.95");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "starting: mpirun"), 0);
    assert_int_equal(count_of(o.err, "needs 20 steps to take effect"), 1);
    assert_null(strstr(o.out, "warning"));
    assert_true(strncmp(o.out, "epochs    1\n", 12) == 0);
}

/* A plugin that this machine cannot use: here an empty file. */
static void test_without_a_gpu_one_line_says_so(void **_)
{
    outcome o;

    (void)_;
    if (access("/dev/nvidiactl", F_OK) == 0)
        skip(); /* there is a GPU, so the reason would be told */
    assert_int_equal(mkdir(in_folder("plugins"), 0700), 0);
    write_text("plugins/libbmuf_cuda.so", "");
    setenv("BMUF_PLUGINS", in_folder("plugins"), 1);
    o = BMUF("train", "tiny.ini", "--out", "on-cpu", "--set", "train.epochs=1");
    assert_code(o, 0);
    assert_says(o.err, "note r0 no GPU: computing on the CPU in fp32\n");
    assert_null(strstr(o.err, "libbmuf_cuda"));
    o = BMUF("train", "tiny.ini", "--out", "on-cpu-2", "--set",
             "train.epochs=1", "--verbose");
    assert_says(o.err, "detail r0 backend cuda is not available: ");
    assert_fails(BMUF("train", "tiny.ini", "--out", "on-gpu", "--set",
                      "job.device=cuda"),
                 69, "backend cuda is not available: ", "libbmuf_cuda.so",
                 "use device cpu instead");
    unsetenv("BMUF_PLUGINS");
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    write_text("other.jsonl", "{\"id\": \"x\", \"audio\": \"test-0.wav\", "
                              "\"text\": \"xyz\"}\n");
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "foreign",
                     "--name", "alien"),
                0);
    assert_int_equal(remove(in_folder("foreign/alien-00000.bmuf.h5")), 0);
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "empty"), 0);
    assert_int_equal(remove(in_folder("empty/data-00000.bmuf.h5")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help_is_printed_to_stdout),
        cmocka_unit_test(test_help_fits_a_terminal),
        cmocka_unit_test(test_every_option_of_a_verb_is_in_its_help),
        cmocka_unit_test(test_version_lists_the_libraries),
        cmocka_unit_test(test_options_are_listed_with_their_defaults),
        cmocka_unit_test(test_a_closed_pipe_is_no_failure),
        cmocka_unit_test(test_unwritable_results_are_a_failure),
        cmocka_unit_test(test_help_and_version_have_several_names),
        cmocka_unit_test(test_far_words_get_no_suggestion),
        cmocka_unit_test(test_options_of_a_section_or_key_are_printed),
        cmocka_unit_test(test_manual_pages_have_all_verbs_options_and_settings),
        cmocka_unit_test(test_manual_pages_are_written_to_a_directory),
        cmocka_unit_test(test_unknown_words_suggest_the_nearest),
        cmocka_unit_test(test_names_of_other_programs_are_known),
        cmocka_unit_test(test_nouns_are_counted),
        cmocka_unit_test(test_values_of_options_are_checked),
        cmocka_unit_test(test_options_have_several_spellings),
        cmocka_unit_test(test_missing_inputs_are_named),
        cmocka_unit_test(test_existing_files_are_not_overwritten),
        cmocka_unit_test(test_a_full_disk_is_reported_and_leaves_nothing),
        cmocka_unit_test(test_missing_memory_is_reported),
        cmocka_unit_test(test_missing_address_space_is_reported),
        cmocka_unit_test(test_a_damaged_shard_is_found_by_check_and_by_train),
        cmocka_unit_test(test_check_lists_all_problems),
        cmocka_unit_test(
            test_data_that_do_not_fit_the_training_data_are_rejected),
        cmocka_unit_test(test_a_supervisor_that_cannot_start_is_reported),
        cmocka_unit_test(test_an_invalid_net_leaves_no_run),
        cmocka_unit_test(test_a_net_that_does_not_fit_the_data_is_located),
        cmocka_unit_test(test_a_dry_run_ends_as_the_run_would),
        cmocka_unit_test(test_ranks_report_an_error_once),
        cmocka_unit_test(test_ranks_warn_once),
        cmocka_unit_test(test_without_a_gpu_one_line_says_so),
    };
    return cmocka_run_group_tests_name("cli", tests, prepare, folder_remove);
}
