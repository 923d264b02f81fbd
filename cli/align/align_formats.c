#include "cli/align/align_formats.h"

#include "cli/json_output.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* Seconds, or stored frames of what is not a recording. */
static double time_of(const bm_aligned *a, size_t frame)
{
    return (double)frame * (a->shift > 0 ? a->shift : 1);
}

/* ---- ctm: id channel start duration word confidence ---------------------- */

static bm_status write_ctm(const bm_aligned *a, bool words, FILE *out)
{
    const bm_aligned_span *pieces = words ? a->words : a->labels;
    size_t n = words ? a->n_words : a->n_labels;

    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s 1 %.3f %.3f %s %.4f\n", a->id,
                time_of(a, pieces[i].first),
                time_of(a, pieces[i].end) - time_of(a, pieces[i].first),
                pieces[i].text, exp(pieces[i].log_p));
    return BM_OK;
}

/* ---- TextGrid, long form ------------------------------------------------- */

static void write_interval(const bm_aligned *a, size_t number, size_t first,
                           size_t end, const char *text, FILE *out)
{
    fprintf(out,
            "        intervals [%zu]:\n"
            "            xmin = %.6f\n"
            "            xmax = %.6f\n"
            "            text = \"",
            number, time_of(a, first), time_of(a, end));
    for (; *text != '\0'; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fprintf(out, "\"\n");
}

/* Intervals cover all of the time: those between pieces have no text. */
static size_t count_intervals(const bm_aligned *a,
                              const bm_aligned_span *pieces, size_t n)
{
    size_t count = n, at = 0;

    for (size_t i = 0; i < n; i++) {
        count += pieces[i].first > at;
        at = pieces[i].end;
    }
    return count + (at < a->map.frames);
}

static void write_tier(const bm_aligned *a, size_t number, const char *name,
                       const bm_aligned_span *pieces, size_t n, FILE *out)
{
    size_t at = 0, k = 0;

    fprintf(out,
            "    item [%zu]:\n"
            "        class = \"IntervalTier\"\n"
            "        name = \"%s\"\n"
            "        xmin = 0\n"
            "        xmax = %.6f\n"
            "        intervals: size = %zu\n",
            number, name, time_of(a, a->map.frames),
            count_intervals(a, pieces, n));
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].first > at)
            write_interval(a, ++k, at, pieces[i].first, "", out);
        write_interval(a, ++k, pieces[i].first, pieces[i].end, pieces[i].text,
                       out);
        at = pieces[i].end;
    }
    if (at < a->map.frames)
        write_interval(a, ++k, at, a->map.frames, "", out);
}

static bm_status write_textgrid(const bm_aligned *a, bool words, FILE *out)
{
    size_t tiers = a->has_words ? 2 : 1;

    (void)words;
    fprintf(out,
            "File type = \"ooTextFile\"\n"
            "Object class = \"TextGrid\"\n"
            "\n"
            "xmin = 0\n"
            "xmax = %.6f\n"
            "tiers? <exists>\n"
            "size = %zu\n"
            "item []:\n",
            time_of(a, a->map.frames), tiers);
    if (a->has_words)
        write_tier(a, 1, "words", a->words, a->n_words, out);
    write_tier(a, tiers, "labels", a->labels, a->n_labels, out);
    return BM_OK;
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *pieces_json(const bm_aligned *a, const char *noun,
                           const bm_aligned_span *pieces, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:f, s:f, s:f, s:I, s:I}", noun, pieces[i].text,
                      "start", time_of(a, pieces[i].first), "end",
                      time_of(a, pieces[i].end), "confidence",
                      exp(pieces[i].log_p), "first_frame",
                      (json_int_t)pieces[i].first, "end_frame",
                      (json_int_t)pieces[i].end));
    return list;
}

static bm_status write_json(const bm_aligned *a, bool words, FILE *out)
{
    json_t *o = json_pack(
        "{s:o, s:f, s:I, s:f, s:o, s:o}", "id", bm_json_text(a->id), "length",
        time_of(a, a->map.frames), "frames", (json_int_t)a->map.frames, "score",
        a->log_p, "words", pieces_json(a, "word", a->words, a->n_words),
        "labels", pieces_json(a, "label", a->labels, a->n_labels));
    int failed = 0;

    (void)words;
    if (o == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the alignment of %s",
                       a->id);
    failed = json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(o);
    if (failed == 0)
        putc('\n', out);
    return BM_OK;
}

static void write_problem_json(const char *id, const char *problem, FILE *out)
{
    json_t *o =
        json_pack("{s:o, s:s}", "id", bm_json_text(id), "error", problem);

    json_dumpf(o, out, JSON_COMPACT);
    putc('\n', out);
    json_decref(o);
}

static const bm_align_format formats[] = {
    {"ctm", false, write_ctm, NULL},
    {"textgrid", true, write_textgrid, NULL},
    {"json", false, write_json, write_problem_json},
};

const bm_align_format *bm_align_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
