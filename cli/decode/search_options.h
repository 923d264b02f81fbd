/* search_options.h - the options of bmuf decode that are about the search. */
#ifndef BM_CLI_DECODE_SEARCH_OPTIONS_H
#define BM_CLI_DECODE_SEARCH_OPTIONS_H

#include "cli/arguments.h"
#include "recognise/transcriber.h"

/* Rows of the verb's options. */
#define BM_SEARCH_FLAGS                                                        \
    {"nbest", "N", "up to N readings of each input, with txt or json", 0,      \
     false},                                                                   \
        {"beam", "N",                                                          \
         "search with N hypotheses; default: 1, the best path alone, or 100 "  \
         "where other options need a search",                                  \
         0, false},                                                            \
        {"priors", "DIR",                                                      \
         "class priors of the labels of this packed set, the training set", 0, \
         false},                                                               \
        {"prior-scale", "S",                                                   \
         "log posterior - S times log prior; default: 0.3", 0, false},         \
        {"blank-scale", "S", "blanks count S times in priors; default: 1", 0,  \
         false},                                                               \
        {"lm", "FILE", "language model: .arpa, .arpa.gz, or of bmuf lm", 0,    \
         false},                                                               \
        {"lm-weight", "W", "times its log probability; default: 0.5", 0,       \
         false},                                                               \
        {"word-score", "S", "added for each word; default: 1.5", 0, false},    \
        {"lexicon", "FILE", "the words that there are, and their symbols", 0,  \
         false},                                                               \
        {"unknown-score", "S",                                                 \
         "added for each word outside the lexicon; default: -10; -inf: there " \
         "are none",                                                           \
         0, false},                                                            \
        {"hot-words", "FILE", "words to prefer, one a line", 0, false},        \
        {"hot-word", "WORDS[=BOOST]", "likewise; may be repeated", 0, true},   \
    {                                                                          \
        "hot-boost", "B", "of hot words without a boost; default: 5", 0, false \
    }

/* The settings that were given; `hot_words` [BM_MOST_GIVEN] is the memory for
 * those. Fails with BM_ERR_ARG, also if one of them would change nothing. */
BM_CHECKED bm_status bm_search_options_read(const bm_arguments *a,
                                            bm_transcriber_settings *out,
                                            const char **hot_words);

#endif
