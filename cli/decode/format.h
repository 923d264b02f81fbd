/*
 * format.h - how bmuf decode writes what it recognised. To add a format: define
 * bm_format_<name>, and add its line to BM_FORMATS.
 */
#ifndef BM_CLI_DECODE_FORMAT_H
#define BM_CLI_DECODE_FORMAT_H

#include "cli/decode/inputs.h"

#include <stdio.h>

/* Name, and what it is. */
#define BM_FORMATS(X)                                                          \
    X(txt, "the text, a line for each input")                                  \
    X(trn, "NIST's: words (id)")                                               \
    X(json, "one object a line: text, score, confidences, places of words")    \
    X(ctm, "NIST's: id, channel, start, duration, word, confidence")           \
    X(stm, "NIST's: id, channel, speaker, start, end, text")                   \
    X(srt, "subtitles, of one recording")                                      \
    X(alto, "ALTO XML, of one image")

/* "txt trn .." and lines for the help, made of BM_FORMATS. */
#define BM_FORMAT_WORD(name, about) #name " "
#define BM_FORMAT_LINE(name, about) "  " #name ": " about "\n"

/* An input and what was recognised. */
typedef struct bm_decoded {
    const bm_input *input;
    const bm_transcript *transcript; /* NULL: it could not be decoded */
    const char *fault;               /* why; else NULL */
    bool alternatives;               /* more readings than one were asked for */
    const char *from_file;           /* the path of the input from the folder of
                                        the file that is written; NULL: stdout */
} bm_decoded;

typedef struct bm_format {
    const char *name;
    const char *ending; /* of files; NULL: the name */
    const char *unit;   /* of places that it needs; NULL: any */
    bool single;        /* a file describes one input */
    bool alternatives;  /* it has a place for them */
    void (*write)(FILE *out, const bm_decoded *d);
} bm_format;

#define X(name, about) extern const bm_format bm_format_##name;
BM_FORMATS(X)
#undef X

/* Precondition: the name is one of BM_FORMATS. */
const bm_format *bm_format_find(const char *name);

/* A name without blanks, controls and parentheses, which some formats cannot
 * have: they become '_'. Writes it to `out`. */
void bm_format_name(FILE *out, const char *name);

/* Are there spaces between words? A text in a language without them has none. */
bool bm_format_has_spaces(const bm_reading *r);

#endif
