/* Configuration files and overrides, valid and invalid. */
#include "core/config/config.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
    long workers;
    double momentum;
    bool nesterov;
    const char *net;
    double eta;
    const char *sum;
    bm_series rate;
} settings;

static const bm_option more_options[] = {
    {"eta", BM_AUTO, offsetof(settings, eta), "auto", 0, 1, NULL, "a share"},
    {"sum", BM_CHOICE, offsetof(settings, sum), "tree", 0, 0, "tree exact fast",
     "an order"},
    {"rate", BM_SERIES, offsetof(settings, rate), "1", 0, 10, NULL, "a rate"},
    {0},
};

static const bm_section more_sections[] = {{"more", more_options, NULL, NULL},
                                           {0}};

static const bm_option job_options[] = {
    {"workers", BM_INT, offsetof(settings, workers), "1", 1, 64, "ranks",
     "how many learn"},
    {0},
};

static const bm_option bmuf_options[] = {
    {"momentum", BM_FLOAT, offsetof(settings, momentum), "0.9", 0, 0.9999, NULL,
     "share of the last update"},
    {"nesterov", BM_FLAG, offsetof(settings, nesterov), "yes", 0, 0, NULL,
     "look ahead"},
    {0},
};

static const bm_option model_options[] = {
    {"net", BM_TEXT, offsetof(settings, net), NULL, 0, 0, "LAYERS",
     "the layers, from left to right"},
    {0},
};

static void check_job(const bm_config *config, bm_faults *faults)
{
    settings s = {0};

    bm_config_peek(config, "job", job_options, &s);
    bm_config_peek(config, "model", model_options, &s);
    if (s.workers == 13)
        bm_config_fault(faults, config, "job", "workers",
                        "%ld workers bring no luck to a net of '%s'", s.workers,
                        s.net);
}

static const bm_section sections[] = {
    {"job", job_options, check_job, NULL},
    {"bmuf", bmuf_options, NULL, NULL},
    {"model", model_options, NULL, NULL},
    {0},
};

static char path[] = "/tmp/test_config_XXXXXX";

static void write_file(const char *text, size_t length)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static bm_config *read_text(const char *text)
{
    bm_config *config = NULL;

    write_file(text, strlen(text));
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_read(config, path));
    return config;
}

static settings fill(const bm_config *config)
{
    settings s = {0};

    assert_ok(bm_config_check(config, sections));
    assert_ok(bm_config_fill(config, "job", job_options, &s));
    assert_ok(bm_config_fill(config, "bmuf", bmuf_options, &s));
    assert_ok(bm_config_fill(config, "model", model_options, &s));
    return s;
}

/* The check must fail with this text; %s stands for the file's name. */
static void assert_reported(const bm_config *config, const char *format)
{
    char text[256];
    const char *name = strstr(format, "%s");

    assert_int_equal(bm_config_check(config, sections), BM_ERR_CONFIG);
    if (name == NULL)
        snprintf(text, sizeof text, "%s", format);
    else
        snprintf(text, sizeof text, "%.*s%s%s", (int)(name - format), format,
                 path, name + 2);
    if (strstr(bm_last_error(), text) == NULL)
        fail_msg("'%s' is not in: %s", text, bm_last_error());
}

static void assert_fault(const char *text, const char *format)
{
    bm_config *config = read_text(text);

    assert_reported(config, format);
    assert_non_null(strstr(bm_last_error(), "1 invalid setting"));
    bm_config_free(config);
}

/* What a file has of it. Free with bm_config_free. */
static bm_config *written_and_read(const bm_config *config)
{
    bm_config *again = NULL;
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_ok(bm_config_write(config, sections, file));
    assert_int_equal(fclose(file), 0);
    assert_ok(bm_config_new(&again));
    assert_ok(bm_config_read(again, path));
    return again;
}

static void test_unset_values_take_their_defaults(void **state)
{
    bm_config *config = read_text("\xEF\xBB\xBF# a study\n"
                                  "[job]\n"
                                  "  workers = 16\r\n"
                                  "\n"
                                  "; the network\n"
                                  "[model]\n"
                                  "net=linear:32 relu linear ; three layers\n"
                                  "\t[bmuf]\n"
                                  "\tmomentum: 0.5");
    settings s = fill(config);

    (void)state;
    assert_int_equal(s.workers, 16);
    assert_true(s.momentum == 0.5);
    assert_true(s.nesterov);
    assert_string_equal(s.net, "linear:32 relu linear");
    bm_config_free(config);
}

static void test_last_override_wins(void **state)
{
    bm_config *config = read_text("[job]\nworkers = 100\n[model]\nnet = a\n");
    settings s;

    (void)state;
    assert_ok(bm_config_set(config, "job.workers = 3"));
    assert_ok(bm_config_set(config, "model.net=b = c"));
    assert_ok(bm_config_set(config, "job.workers=64")); /* a bound is allowed */
    s = fill(config);
    assert_int_equal(s.workers, 64);
    assert_string_equal(s.net, "b = c");
    bm_config_free(config);
}

static void test_conflicting_settings_are_reported_with_the_rest(void **state)
{
    bm_config *config = read_text("[bmuf]\nmomentum = 1.5\n"
                                  "[job]\nworkers = 13\n");

    (void)state;
    assert_reported(config, "%s:2: bmuf.momentum: 1.5 is outside");
    assert_reported(config, "model.net is not set");
    assert_reported(config, "%s:4: 13 workers bring no luck to a net of ''");
    assert_reported(config, "3 invalid settings");
    bm_config_free(config);
}

/* 65 is out of bounds: bm_config_peek returns the default. */
static void test_an_invalid_setting_is_reported_once(void **state)
{
    settings s = {.momentum = 1, .sum = "?"};
    bm_config *config = read_text("[job]\nworkers = 65\n"
                                  "[model]\nnet = a\n"
                                  "[more]\neta = much\nsum = none\n");

    (void)state;
    assert_reported(config, "%s:2: job.workers: 65 is outside [1, 64] ranks");
    bm_config_peek(config, "job", job_options, &s);
    assert_int_equal(s.workers, 1);
    bm_config_peek(config, "bmuf", bmuf_options, &s);
    assert_true(s.momentum == 0.9);
    bm_config_peek(config, "more", more_options, &s);
    assert_true(s.eta != s.eta);
    assert_string_equal(s.sum, "tree");
    bm_config_free(config);
}

static void test_without_a_configuration_all_is_default(void **state)
{
    settings s = {0};

    (void)state;
    assert_ok(bm_config_fill(NULL, "bmuf", bmuf_options, &s));
    assert_true(s.momentum == 0.9);
    assert_int_equal(bm_config_fill(NULL, "model", model_options, &s),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(
        bm_last_error(), "model.net is not set; add [model] net = LAYERS (the "
                         "layers, from left to right)"));
}

static void test_unknown_names_are_rejected_with_the_nearest(void **state)
{
    bm_config *config = NULL;

    (void)state;
    assert_fault("[model]\nnet=a\n[bmuf]\nmomentun = 1",
                 "%s:4: bmuf.momentun is unknown; the nearest is "
                 "bmuf.momentum");
    assert_fault("[model]\nnet=a\n[bmfu]\n\nmomentum = 1",
                 "%s:5: section [bmfu] is unknown; the nearest is [bmuf]");
    assert_fault("[model]\nnet=a\n[job]\nhands = 2\n",
                 "%s:4: job.hands is unknown; [job] has: workers");
    assert_fault("[model]\nnet=a\n[job]\nnesterov = no\n",
                 "%s:4: job.nesterov is unknown; there is bmuf.nesterov");
    assert_fault("[model]\nnet=a\n[decoder]\nbeam = 2\n",
                 "%s:4: section [decoder] is unknown; the sections are: job "
                 "bmuf model");
    config = read_text("[model]\nnet=a\n");
    assert_ok(bm_config_set(config, "job.worker=2"));
    assert_reported(config,
                    "command line: job.worker is unknown; the nearest is "
                    "job.workers");
    bm_config_free(config);
}

static void test_invalid_values_are_rejected(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"[job]\nworkers = 65", "job.workers: 65 is outside [1, 64] ranks"},
        {"[job]\nworkers = -1", "job.workers: -1 is outside [1, 64] ranks"},
        {"[job]\nworkers = 1.5", "'1.5' is not an integer"},
        {"[job]\nworkers =", "'' is not an integer"},
        {"[job]\nworkers = 99999999999999999999", "is not an integer"},
        {"[bmuf]\nmomentum = 1", "bmuf.momentum: 1 is outside [0, 0.9999]"},
        {"[bmuf]\nmomentum = nan", "'nan' is not a number"},
        {"[bmuf]\nmomentum = inf", "'inf' is not a number"},
        {"[bmuf]\nmomentum = 0.5x", "'0.5x' is not a number"},
        {"[bmuf]\nmomentum = 0.5#half", "'0.5#half' is not a number"},
        {"[bmuf]\nmomentum = \"0.5 # half\"", "'0.5 # half' is not a number"},
        {"[bmuf]\nnesterov = maybe", "'maybe' is not yes or no"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        char text[128];
        snprintf(text, sizeof text, "[model]\nnet=a\n%s\n", cases[i].line);
        assert_fault(text, "%s:4: ");
        assert_fault(text, cases[i].text);
    }
}

static void test_faults_of_the_file_are_reported_by_line(void **state)
{
    static char text[66000];

    (void)state;
    assert_fault("workers = 2\n[model]\nnet=a\n",
                 "%s:1: workers is set before the first [section]");
    assert_fault("[model]\nnet=a\nwhat is this\n",
                 "%s:3: neither [section] nor key = value");
    assert_fault("[model]\nnet=a\n[job\n",
                 "%s:3: neither [section] nor key = value");
    assert_fault("[model]\nnet=a\n[job]\nworkers=1\n\nworkers=2\n",
                 "%s:6: job.workers is set twice; first in ");
    assert_fault("[model]\nnet=caf\xe9\n", "%s:2: model.net is not UTF-8");
    snprintf(text, sizeof text, "[model]\nnet=a\n%0200d = a\n", 0);
    assert_fault(text, "%s:3: the name is longer than 198 characters");
    snprintf(text, sizeof text, "[model]\nnet=a\n;%065535d\n", 0);
    assert_fault(text,
                 "%s:3: the line is longer than 65535 characters or not text");
}

static void test_all_faults_are_reported_at_once(void **state)
{
    bm_config *config = read_text("[job]\n"
                                  "workers = many\n"
                                  "hands = 2\n"
                                  "nonsense\n"
                                  "[bmuf]\n"
                                  "momentum = 7\n"
                                  "[magic]\n"
                                  "wand = yes\n"
                                  "more nonsense\n");

    (void)state;
    assert_ok(bm_config_set(config, "bmuf.nesterov=1"));
    assert_reported(config, "8 invalid settings");
    assert_reported(config, "%s:2: job.workers");
    assert_reported(config, "%s:3: job.hands");
    assert_reported(config, "%s:4: neither");
    assert_reported(config, "%s:6: bmuf.momentum");
    assert_reported(config, "%s:8: section [magic]");
    assert_reported(config, "%s:9: neither");
    assert_reported(config, "command line: bmuf.nesterov");
    assert_reported(config, "model.net is not set");
    bm_config_free(config);
}

static void test_faults_beyond_the_limit_are_counted(void **state)
{
    bm_config *config = NULL;
    char line[64];

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "model.net=a"));
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "job.key%d=1", i);
        assert_ok(bm_config_set(config, line));
    }
    assert_reported(config, "1000 invalid settings");
    assert_reported(config, "\n  and 980 more");
    bm_config_free(config);
}

static void test_invalid_assignments_are_rejected(void **state)
{
    static const char *const bad[] = {
        "workers=2", "job.workers",  "=", "", "job=x.y",
        "a.b=c\nd",  "a.b=\"c\" ; d"};
    bm_config *config = NULL;
    static char text[66000];

    (void)state;
    assert_ok(bm_config_new(&config));
    FOR_EACH (i, bad)
        assert_int_equal(bm_config_set(config, bad[i]), BM_ERR_ARG);
    snprintf(text, sizeof text, "a.b=%065535d", 0);
    assert_int_equal(bm_config_set(config, text), BM_ERR_ARG);
    snprintf(text, sizeof text, "a.%0200d=1", 0);
    assert_int_equal(bm_config_set(config, text), BM_ERR_ARG);
    bm_config_free(config);
}

/* The net must end where the next setting, 3 workers, begins. */
static void assert_net(const char *text, const char *net)
{
    bm_config *config = read_text(text);
    settings s = fill(config);

    assert_string_equal(s.net, net);
    assert_int_equal(s.workers, 3);
    bm_config_free(config);
}

static void test_indented_lines_continue_a_value(void **state)
{
    (void)state;
    assert_net("[model]\n"
               "net = linear:32 ; first\n"
               "      relu linear:64\n"
               "  ; in between\n"
               "\trelu   ; third\n"
               "  linear\n"
               "[job]\n"
               "  workers = 3\n",
               "linear:32 relu linear:64 relu linear");
}

/* A comment needs a blank before it; double quotes protect the value. */
static void test_comments_end_a_line_and_quotes_protect(void **state)
{
    static const char *const cases[][2] = {
        {"data/a # mine", "data/a"},
        {"data/a\t; mine", "data/a"},
        {"data/a#b;c # \"mine\"", "data/a#b;c"},
        {"\"data/a # b\"", "data/a # b"},
        {"\"data/a ; b\" # mine", "data/a ; b"},
        {"\" data/a \"\t; mine", " data/a "},
        {"\"say \"a\" twice\"", "say \"a\" twice"},
        {"\"\"", ""},
        {"data/\"a\"", "data/\"a\""},
        {"# nothing", ""},
    };
    bm_config *config = NULL;

    (void)state;
    FOR_EACH (i, cases) {
        char line[200];
        snprintf(line, sizeof line,
                 "[model] # a section\nnet = %s\n[job]\nworkers = 3 # x = 4\n",
                 cases[i][0]);
        assert_net(line, cases[i][1]);
    }
    assert_net("[model]\nnet = a # first = 1\n  b # second = 2\n  c\n"
               "[job]\nworkers=3",
               "a b c");
    assert_net("# say: \"a\n[model]\n; net = \"a\" is the default\nnet = b\n"
               "  # net = \"c\n[job]\nworkers=3",
               "b");
    config = read_text("[model]\nnet = \"a # b\n");
    assert_reported(config, "%s:2: the value begins with a double quote, but "
                            "does not end");
    bm_config_free(config);
    assert_fault("[model]\nnet = \"a\"\n  b\n",
                 "%s:3: neither [section] nor key = value");
}

/* A value that begins below its key. */
static void test_a_value_may_begin_in_the_next_line(void **state)
{
    (void)state;
    assert_net("[model]\n"
               "net =\n"
               "    conv:8,3x3,stride:2x1 relu\n"
               "    linear\n"
               "[job]\n"
               "workers = 3\n",
               "conv:8,3x3,stride:2x1 relu linear");
}

static void test_long_values_are_written_and_read_back(void **state)
{
    bm_config *config = NULL, *again = NULL;
    char net[2000] = "model.net=";

    (void)state;
    for (int i = 0; i < 100; i++)
        snprintf(net + strlen(net), sizeof net - strlen(net), "linear:%d%s ",
                 i * i, i > 50 ? "\t" : "");
    snprintf(net + strlen(net), sizeof net - strlen(net), "linear");
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, net));
    again = written_and_read(config);
    assert_string_equal(fill(again).net, net + strlen("model.net="));
    bm_config_free(config);
    bm_config_free(again);
}

/* Paths may have 4,095 bytes, more than inih's line; with a blank and # they are
 * written in quotes. */
static void test_a_long_path_is_read_and_written(void **state)
{
    static const char *const forms[] = {"/a%04090d", "/a %04000d # b",
                                        "\"/a%04090d"};

    (void)state;
    FOR_EACH (i, forms) {
        char name[4200], net[4300], text[4400];
        bm_config *config = NULL, *again = NULL;

        snprintf(name, sizeof name, forms[i], 0);
        snprintf(net, sizeof net, "model.net=%s", name);
        snprintf(text, sizeof text,
                 i == 0 ? "[model]\nnet=%s ; c\n"
                        : "[model]\nnet: \"%s\" # c\n",
                 name);
        again = read_text(text);
        assert_string_equal(fill(again).net, name);
        bm_config_free(again);
        assert_ok(bm_config_new(&config));
        assert_ok(bm_config_set(config, net));
        again = written_and_read(config);
        assert_string_equal(fill(again).net, name);
        bm_config_free(config);
        bm_config_free(again);
    }
}

/* Any accepted value is read back from a file unchanged. */
static void test_values_are_rejected_or_read_back_unchanged(void **state)
{
    static const char *const words[] = {
        "a",  "#b", "[c]", "d:", "e=f",       ";g",  "h;i", "\"", "x:y", "[j",
        "k:", "-",  "#",   "=",  "long-word", "\"l", "m\"", ";",  "n\"o"};
    static const char *const between[] = {" ", " ", "  ", " \t", "\t"};
    enum { WORDS = sizeof words / sizeof words[0] };
    bm_rng rng = bm_rng_make(5, "config", 0);
    int kept = 0, refused = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        bm_config *config = NULL, *again = NULL;
        char net[1200] = "model.net=";
        size_t n = 1 + bm_rng_below(&rng, 80);
        size_t of = 1 + bm_rng_below(&rng, WORDS);

        for (size_t k = 0; k < n; k++)
            snprintf(net + strlen(net), sizeof net - strlen(net), "%s%s",
                     k > 0 ? between[bm_rng_below(&rng, 5)] : "",
                     words[bm_rng_below(&rng, of)]);
        assert_ok(bm_config_new(&config));
        if (bm_config_set(config, net) == BM_OK) {
            again = written_and_read(config);
            assert_string_equal(fill(again).net, net + strlen("model.net="));
            kept++;
        } else {
            refused++;
        }
        bm_config_free(config);
        bm_config_free(again);
    }
    assert_true(kept > 500 && refused > 500);
}

static void test_auto_and_choice_are_parsed(void **state)
{
    bm_config *config = NULL;
    settings s = {0};

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_fill(config, "more", more_options, &s));
    assert_true(s.eta != s.eta);
    assert_string_equal(s.sum, "tree");
    assert_ok(bm_config_set(config, "more.eta=0.5"));
    assert_ok(bm_config_set(config, "more.sum=fast"));
    assert_ok(bm_config_fill(config, "more", more_options, &s));
    assert_true(s.eta == 0.5);
    assert_string_equal(s.sum, "fast");
    assert_ok(bm_config_set(config, "more.eta=2"));
    assert_ok(bm_config_set(config, "more.sum=tre"));
    assert_int_equal(bm_config_check(config, more_sections), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "2 is outside [0, 1]"));
    assert_non_null(
        strstr(bm_last_error(), "'tre' is not one of: tree exact fast"));
    bm_config_free(config);
}

static bool changed(const char *text, const char *key)
{
    bm_config *config = NULL;
    bool is = false;

    assert_ok(bm_config_new(&config));
    if (text != NULL)
        assert_ok(bm_config_set(config, text));
    is = bm_config_changed(config, "more", more_options, key);
    bm_config_free(config);
    return is;
}

static void test_a_setting_given_its_default_is_not_changed(void **state)
{
    (void)state;
    assert_false(changed(NULL, "eta"));
    assert_false(changed("more.eta=auto", "eta"));
    assert_true(changed("more.eta=0.5", "eta"));
    assert_false(changed("more.eta=5", "eta")); /* out of bounds */
    assert_false(changed("more.sum=tree", "sum"));
    assert_true(changed("more.sum=exact", "sum"));
    assert_false(changed("more.sum=exact", "eta"));
}

static void test_absent_file_is_named(void **state)
{
    bm_config *config = NULL;
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_config_new(&config));
    status = bm_config_read(config, "/nowhere/run.ini");
    assert_int_equal(status, BM_ERR_MISSING);
    assert_int_equal(bm_status_exit(status), 66);
    assert_non_null(strstr(bm_last_error(), "/nowhere/run.ini"));
    assert_int_equal(bm_config_read(config, "/"), BM_ERR_MISSING);
    bm_config_free(config);
}

static void test_written_settings_are_read_back_unchanged(void **state)
{
    bm_config *config = read_text("[model]\nnet = \"conv:32,3x3 relu = #1\"\n");
    bm_config *again = NULL;
    settings s;

    (void)state;
    assert_ok(bm_config_set(config, "bmuf.momentum=0.125"));
    again = written_and_read(config);
    s = fill(again);
    assert_string_equal(s.net, "conv:32,3x3 relu = #1");
    assert_true(s.momentum == 0.125);
    assert_int_equal(s.workers, 1);
    bm_config_free(config);
    bm_config_free(again);
}

static void test_files_of_another_kind_are_told_in_one_line(void **state)
{
    static const struct {
        const char *bytes, *kind;
    } cases[] = {
        {"\x89PNG\r\n\x1a\n[job]\n", "is a PNG image, not a configuration; "},
        {"\x89HDF\r\n\x1a\n", "is an HDF5 file, not a configuration; "},
        {"{\"id\": 1}\n", "is JSON, not a configuration; "},
        {"#!/bin/sh\nx=1\n", "is a script, not a configuration; "},
        {"u1 wav/u1.wav\n", "is a Kaldi scp file, not a configuration; "},
        {"# Notes\n\nThis is\nno more\nthan a text\n",
         "is a text, not a configuration; lines that are neither "
         "\"[section]\" nor \"key = value\" in a section: 3, settings: 0. "},
        {"one\n[two]\nthree\nfour = 4\nfive\n",
         "in a section: 3, settings: 1. "},
        {"a = 1\nb = 2\nc = 3\n", "in a section: 3, settings: 0. "},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_config *config = NULL;

        write_file(cases[i].bytes, strlen(cases[i].bytes));
        assert_ok(bm_config_new(&config));
        assert_int_equal(bm_config_read(config, path), BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), cases[i].kind));
        assert_null(strchr(bm_last_error(), '\n'));
        bm_config_free(config);
    }
}

/* Any bytes must give a verdict, and no more; sanitizers watch. */
static void test_any_bytes_get_a_verdict(void **state)
{
    static const char good[] = "# x\n[job]\nworkers = 2\n[model]\nnet = a b\n"
                               "[bmuf]\nmomentum = 0.5 ; half\nnesterov=no\n";
    unsigned seed = 1;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        bm_config *config = NULL;
        char text[sizeof good];
        size_t length = sizeof good - 1;

        memcpy(text, good, sizeof good);
        for (int k = 0; k < 1 + i % 5; k++) {
            seed = seed * 1664525u + 1013904223u;
            text[(seed >> 8) % length] = (char)(seed >> 24);
        }
        seed = seed * 1664525u + 1013904223u;
        write_file(text, i % 3 == 0 ? (seed >> 8) % length : length);
        assert_ok(bm_config_new(&config));
        if (bm_config_read(config, path) == BM_OK)
            (void)!bm_config_check(config, sections);
        else /* of another kind */
            assert_non_null(strstr(bm_last_error(), ", not a configuration; "));
        bm_config_free(config);
    }
}

static void test_series_are_values_from_epochs_on(void **state)
{
    static const char too_many[] = "1 2@1 3@2 4@3 5@4 6@5 7@6 8@7 9@8 1@9 2@10 "
                                   "3@11 4@12 5@13 6@14 7@15 8@16";
    static const char *const faults[] = {
        "",         "1@1",      "1@0 2",      "1@0 2@0", "1@0 2@-1",  "1@0 2@",
        "1@0 11@1", "1@0, 2@1", "auto@0 1@1", "1 @0",    "1@0 2@nan", too_many};
    bm_config *config = NULL;
    settings s = {0};
    bm_series x, y;

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_fill(config, "more", more_options, &s));
    assert_false(bm_series_changes(&s.rate));
    assert_true(bm_series_at(&s.rate, 100) == 1);
    assert_ok(bm_config_set(config, "more.rate=2@0 0.5@1.5  3@10"));
    assert_ok(bm_config_fill(config, "more", more_options, &s));
    assert_true(bm_series_changes(&s.rate));
    assert_true(bm_series_at(&s.rate, 0) == 2);
    assert_true(bm_series_at(&s.rate, 1.49) == 2);
    assert_true(bm_series_at(&s.rate, 1.5) == 0.5);
    assert_true(bm_series_at(&s.rate, 9.99) == 0.5);
    assert_true(bm_series_at(&s.rate, 1e9) == 3);
    assert_true(bm_config_changed(config, "more", more_options, "rate"));
    FOR_EACH (i, faults) {
        char text[200];

        snprintf(text, sizeof text, "more.rate=%s", faults[i]);
        assert_ok(bm_config_set(config, text));
        assert_int_equal(bm_config_check(config, more_sections), BM_ERR_CONFIG);
    }
    bm_config_free(config);
    assert_true(bm_series_read("auto@0 0.50@2", true, &x));
    assert_true(bm_series_read("auto 5e-1@2", true, &y));
    assert_true(bm_series_equal(&x, &y));
    assert_true(bm_series_at(&x, 1) != bm_series_at(&x, 1)); /* NAN */
}

static void test_joined_series_change_whenever_one_does(void **state)
{
    static const struct {
        const char *a, *b;
        int n;
        double from[4];
    } rows[] = {{"7", "2", 1, {0}},
                {"7@0 8@3", "2", 2, {0, 3}},
                {"7", "2@0 9@1.5", 2, {0, 1.5}},
                {"7@0 8@3 9@5", "2@0 4@1 6@3", 4, {0, 1, 3, 5}}};
    bm_series a, b, joined, none = {0};

    (void)state;
    FOR_EACH (i, rows) {
        assert_true(bm_series_read(rows[i].a, false, &a));
        assert_true(bm_series_read(rows[i].b, false, &b));
        assert_true(bm_series_join(&a, &b, &joined));
        assert_int_equal(joined.n, rows[i].n);
        for (int k = 0; k < joined.n; k++)
            assert_true(joined.from[k] == rows[i].from[k]);
    }
    assert_true(bm_series_join(&none, &none, &joined));
    assert_int_equal(joined.n, 1);
    assert_true(bm_series_read("0 1@1 2@2 3@3 4@4 5@5 6@6 7@7 8@8", 0, &a));
    assert_true(bm_series_read("0 1@11 2@12 3@13 4@14 5@15 6@16 7@17", 0, &b));
    assert_true(bm_series_join(&a, &b, &joined));
    assert_int_equal(joined.n, BM_SERIES_MOST);
    assert_true(
        bm_series_read("0 1@11 2@12 3@13 4@14 5@15 6@16 7@17 8@18", 0, &b));
    assert_false(bm_series_join(&a, &b, &joined));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unset_values_take_their_defaults),
        cmocka_unit_test(test_last_override_wins),
        cmocka_unit_test(test_without_a_configuration_all_is_default),
        cmocka_unit_test(test_series_are_values_from_epochs_on),
        cmocka_unit_test(test_joined_series_change_whenever_one_does),
        cmocka_unit_test(test_unknown_names_are_rejected_with_the_nearest),
        cmocka_unit_test(test_invalid_values_are_rejected),
        cmocka_unit_test(test_faults_of_the_file_are_reported_by_line),
        cmocka_unit_test(test_all_faults_are_reported_at_once),
        cmocka_unit_test(test_faults_beyond_the_limit_are_counted),
        cmocka_unit_test(test_invalid_assignments_are_rejected),
        cmocka_unit_test(test_indented_lines_continue_a_value),
        cmocka_unit_test(test_comments_end_a_line_and_quotes_protect),
        cmocka_unit_test(test_a_value_may_begin_in_the_next_line),
        cmocka_unit_test(test_long_values_are_written_and_read_back),
        cmocka_unit_test(test_a_long_path_is_read_and_written),
        cmocka_unit_test(test_values_are_rejected_or_read_back_unchanged),
        cmocka_unit_test(test_auto_and_choice_are_parsed),
        cmocka_unit_test(test_conflicting_settings_are_reported_with_the_rest),
        cmocka_unit_test(test_an_invalid_setting_is_reported_once),
        cmocka_unit_test(test_a_setting_given_its_default_is_not_changed),
        cmocka_unit_test(test_absent_file_is_named),
        cmocka_unit_test(test_written_settings_are_read_back_unchanged),
        cmocka_unit_test(test_files_of_another_kind_are_told_in_one_line),
        cmocka_unit_test(test_any_bytes_get_a_verdict),
    };
    int file = mkstemp(path), failed = 0;

    if (file < 0 || close(file) != 0)
        return 1;
    failed = RUN_GROUP("config", tests);
    unlink(path);
    return failed;
}
