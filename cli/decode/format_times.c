/* format_times.c - formats that say when a word was spoken. */
#include "cli/decode/format.h"

#include <math.h>
#include <string.h>

/* ---- NIST's -------------------------------------------------------------- */

/* file channel start duration word confidence */
static void write_ctm(FILE *out, const bm_decoded *d)
{
    const bm_reading *r = NULL;

    if (d->transcript == NULL)
        return;
    r = &d->transcript->readings[0];
    for (size_t i = 0; i < r->n_words; i++) {
        const bm_transcript_word *w = &r->words[i];

        bm_format_name(out, d->input->id);
        fprintf(out, " 1 %.3f %.3f %s %.3f\n", w->start, w->end - w->start,
                w->text, w->confidence);
    }
}

const bm_format bm_format_ctm = {
    .name = "ctm",
    .unit = "s",
    .write = write_ctm,
};

/* file channel speaker begin end text */
static void write_stm(FILE *out, const bm_decoded *d)
{
    const bm_transcript *t = d->transcript;

    if (t == NULL)
        return;
    bm_format_name(out, d->input->id);
    fputs(" 1 ", out);
    bm_format_name(out, d->input->speaker[0] != '\0' ? d->input->speaker
                                                     : "unknown");
    fprintf(out, " 0.000 %.3f %s\n", t->length, t->readings[0].text);
}

const bm_format bm_format_stm = {
    .name = "stm",
    .unit = "s",
    .write = write_stm,
};

/* ---- subtitles ----------------------------------------------------------- */

/* A subtitle ends before it is too long to read, and where nobody speaks. */
enum { MOST_LINES = 2, LINE_CHARACTERS = 42 };
static const double most_seconds = 7, pause = 0.8;

static size_t characters(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void write_time(FILE *out, double seconds)
{
    long ms = lround(seconds * 1000);

    fprintf(out, "%02ld:%02ld:%02ld,%03ld", ms / 3600000, ms / 60000 % 60,
            ms / 1000 % 60, ms % 1000);
}

/* Puts a word after *column characters of a line. True: it begins the next
 * line. */
static bool wraps(size_t *column, const char *word)
{
    size_t n = characters(word), with = *column + 1 + n;
    bool next = *column > 0 && with > LINE_CHARACTERS;

    *column = *column == 0 || next ? n : with;
    return next;
}

/* The end of the subtitle that begins with word i. */
static size_t end_of_subtitle(const bm_reading *r, size_t i)
{
    size_t first = i, column = characters(r->words[i].text), lines = 1;

    while (++i < r->n_words) {
        const bm_transcript_word *w = &r->words[i];

        lines += wraps(&column, w->text);
        if (lines > MOST_LINES || w->start - w[-1].end > pause ||
            w->end - r->words[first].start > most_seconds)
            break;
    }
    return i;
}

static void write_lines(FILE *out, const char *between,
                        const bm_transcript_word *words, size_t n)
{
    size_t column = 0;

    for (size_t i = 0; i < n; i++) {
        bool next = wraps(&column, words[i].text);

        if (i > 0)
            fputs(next ? "\n" : between, out);
        fputs(words[i].text, out);
    }
    fputs("\n\n", out);
}

static void write_srt(FILE *out, const bm_decoded *d)
{
    const bm_reading *r = NULL;
    const char *between = NULL;
    size_t end = 0, number = 0;

    if (d->transcript == NULL)
        return;
    r = &d->transcript->readings[0];
    between = bm_format_has_spaces(r) ? " " : "";
    for (size_t i = 0; i < r->n_words; i = end) {
        end = end_of_subtitle(r, i);
        fprintf(out, "%zu\n", ++number);
        write_time(out, r->words[i].start);
        fputs(" --> ", out);
        write_time(out, r->words[end - 1].end);
        fputc('\n', out);
        write_lines(out, between, r->words + i, end - i);
    }
}

const bm_format bm_format_srt = {
    .name = "srt",
    .unit = "s",
    .single = true,
    .write = write_srt,
};
