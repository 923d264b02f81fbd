/*
 * format_alto.c - ALTO (Analyzed Layout and Text Object, Library of Congress),
 * version 4: an image is a page with one line, words have their places in pixels.
 */
#include "cli/decode/format.h"

#include "core/text/printable.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>

static const char head[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<alto xmlns=\"http://www.loc.gov/standards/alto/ns-v4#\">\n"
    "  <Description>\n"
    "    <MeasurementUnit>pixel</MeasurementUnit>\n"
    "    <sourceImageInformation><fileName>";
static const char below_head[] = "</fileName></sourceImageInformation>\n"
                                 "  </Description>\n"
                                 "  <Layout>\n";
static const char tail[] = "          </TextLine>\n"
                           "        </TextBlock>\n"
                           "      </PrintSpace>\n"
                           "    </Page>\n"
                           "  </Layout>\n"
                           "</alto>\n";

/* Text with the characters that XML reserves replaced; controls are left
 * out. */
static void write_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, out);
        }
}

static void write_place(FILE *out, double left, double right, size_t height)
{
    long x = lround(left);

    fprintf(out, "HPOS=\"%ld\" VPOS=\"0\" WIDTH=\"%ld\" HEIGHT=\"%zu\"", x,
            lround(right) - x, height);
}

static void open_block(FILE *out, const char *name, const char *id,
                       const bm_transcript *t)
{
    fprintf(out, "<%s%s%s%s ", name, id[0] != '\0' ? " ID=\"" : "", id,
            id[0] != '\0' ? "\"" : "");
    write_place(out, 0, t->length, t->height);
    fputs(">\n", out);
}

/* Between two words, the second of which is on the left side of the first in
 * writing from right to left. */
static void write_space(FILE *out, const bm_transcript_word *a,
                        const bm_transcript_word *b)
{
    long left = lround(fmin(a->end, b->end));
    long right = lround(fmax(a->start, b->start));

    fprintf(out, "            <SP HPOS=\"%ld\" VPOS=\"0\" WIDTH=\"%ld\"/>\n",
            left, right > left ? right - left : 0);
}

static void write_words(FILE *out, const bm_reading *r, size_t height)
{
    bool spaces = bm_format_has_spaces(r);

    for (size_t i = 0; i < r->n_words; i++) {
        const bm_transcript_word *w = &r->words[i];

        if (i > 0 && spaces)
            write_space(out, w - 1, w);
        fprintf(out, "            <String ID=\"w%zu\" ", i + 1);
        write_place(out, w->start, w->end, height);
        fprintf(out, " WC=\"%.3f\" CONTENT=\"", w->confidence);
        write_text(out, w->text);
        fputs("\"/>\n", out);
    }
}

/* The name of the image, which may have any bytes. */
static void write_name(FILE *out, const char *name)
{
    char *printable = bm_printable_copy(name);

    write_text(out, printable != NULL ? printable : "");
    free(printable);
}

static void write_alto(FILE *out, const bm_decoded *d)
{
    const bm_transcript *t = d->transcript;

    if (t == NULL)
        return;
    fputs(head, out);
    write_name(out, d->from_file != NULL ? d->from_file : d->input->shown);
    fputs(below_head, out);
    fprintf(out,
            "    <Page ID=\"page1\" PHYSICAL_IMG_NR=\"1\" WIDTH=\"%.0f\" "
            "HEIGHT=\"%zu\">\n      ",
            t->length, t->height);
    open_block(out, "PrintSpace", "", t);
    fputs("        ", out);
    open_block(out, "TextBlock", "block1", t);
    fputs("          ", out);
    open_block(out, "TextLine", "line1", t);
    write_words(out, &t->readings[0], t->height);
    fputs(tail, out);
}

const bm_format bm_format_alto = {
    .name = "alto",
    .ending = "xml",
    .unit = "pixels",
    .single = true,
    .write = write_alto,
};
