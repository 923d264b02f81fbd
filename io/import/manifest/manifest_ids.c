/*
 * manifest_ids.c - ids of rows: made of names of files where there are none, told
 * apart, and compared. Speakers are numbered here, too, since both sort the rows
 * by a text.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/file/path.h"
#include "io/shard/shard.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sorts rows by one of their texts. */
typedef struct sort_key {
    const char *text;
    size_t row;
} sort_key;

/* *at: an id without slashes and blanks. */
static bm_status keep_id(bm_manifest *m, char *id, size_t *at)
{
    for (char *c = id; *c != '\0'; c++)
        if (*c == '/' || *c == ' ')
            *c = '-';
    return bm_manifest_keep(m, id, at);
}

static bool is_excerpt(const bm_manifest_entry *e)
{
    return e->start > 0 || e->duration > 0;
}

/* The id of a row without one: the name of its file without the ending, of an
 * excerpt with its start in milliseconds; `whole`: the path in place of the
 * name. */
static bm_status make_id(bm_manifest *m, bm_manifest_entry *e, bool whole)
{
    char id[BM_LONGEST_TAG + 1], start[32] = "";
    const char *path = m->text + e->path, *dot = NULL;
    int n = 0;

    if (whole)
        path += strncmp(path, m->path, m->folder) == 0 ? m->folder : 0;
    else
        path += bm_path_folder_length(path);
    dot = strrchr(path, '.');
    if (dot == NULL || dot == path || strchr(dot, '/') != NULL)
        dot = path + strlen(path);
    if (is_excerpt(e))
        snprintf(start, sizeof start, "-%07.0f", 1000 * e->start);
    n = snprintf(id, sizeof id, "%.*s%s", (int)(dot - path), path, start);
    if (n < 0 || (size_t)n >= sizeof id) {
        bm_manifest_fault_row(
            m, e,
            "there is no \"id\", and the name of the file is longer than "
            "%d bytes",
            BM_LONGEST_TAG);
        return BM_OK;
    }
    return keep_id(m, id, &e->id);
}

/* Puts the folder of its file before the id of a row. */
static bm_status add_folder(bm_manifest *m, bm_manifest_entry *e)
{
    char id[BM_LONGEST_TAG + 1];
    const char *file = m->text + e->file;
    size_t end = bm_path_folder_length(file);
    size_t skipped = bm_path_folder_length(m->path);
    int n = 0;

    if (strncmp(file, m->path, skipped) != 0)
        skipped = strspn(file, "/.");
    if (end <= skipped)
        return BM_OK;
    n = snprintf(id, sizeof id, "%.*s%s", (int)(end - skipped), file + skipped,
                 m->text + e->id);
    if (n >= 0 && (size_t)n < sizeof id)
        return keep_id(m, id, &e->id);
    bm_manifest_fault_row(
        m, e, "the id with its folder is longer than %d bytes", BM_LONGEST_TAG);
    return BM_OK;
}

/* The id of a row of another file, as a page is, which has one. */
static bool is_of_page(const bm_manifest *m, const bm_manifest_entry *e)
{
    return !e->made && strcmp(m->text + e->file, m->path) != 0;
}

/* *any: there are rows without an id, or of pages. */
static bm_status make_ids(bm_manifest *m, bool whole, bool *any)
{
    *any = false;
    for (size_t i = 0; i < m->n; i++) {
        bm_manifest_entry *e = &m->entries[i];
        bool page = is_of_page(m, e);

        *any |= e->made || page;
        if (e->made)
            BM_TRY(make_id(m, e, whole));
        else if (page && whole)
            BM_TRY(add_folder(m, e));
    }
    return BM_OK;
}

static int compare(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* *out: the rows, sorted by the text at offset `place` of an entry;
 * free(*out). */
static bm_status sort(const bm_manifest *m, size_t place, sort_key **out)
{
    sort_key *keys = malloc((m->n + 1) * sizeof *keys);

    if (keys == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to sort %zu rows of %s", m->n,
                       m->path);
    for (size_t i = 0; i < m->n; i++) {
        size_t at = 0;
        memcpy(&at, (const char *)&m->entries[i] + place, sizeof at);
        keys[i] = (sort_key){m->text + at, i};
    }
    qsort(keys, m->n, sizeof *keys, compare);
    *out = keys;
    return BM_OK;
}

/* A list may name a file twice. */
static bool are_same(const bm_manifest *m, const bm_manifest_entry *a,
                     const bm_manifest_entry *b)
{
    return a->line == b->line &&
           strcmp(m->text + a->file, m->text + b->file) == 0 &&
           strcmp(m->text + a->path, m->text + b->path) == 0 &&
           strcmp(m->text + a->shape, m->text + b->shape) == 0;
}

static void report_duplicate(bm_manifest *m, const bm_manifest_entry *first,
                             const bm_manifest_entry *second)
{
    const char *id = m->text + second->id, *file = m->text + first->file;

    if (are_same(m, first, second))
        bm_manifest_fault_row(m, second,
                              "%.300s names it twice (id \"%.100s\"); remove "
                              "one of the two",
                              m->path, id);
    else if (strcmp(file, m->text + second->file) == 0)
        bm_manifest_fault_row(m, second,
                              "duplicate id \"%.100s\", also on line %zu", id,
                              first->line);
    else
        bm_manifest_fault_row(m, second,
                              "duplicate id \"%.100s\", also in %.300s:%zu", id,
                              file, first->line);
}

bm_status bm_manifest_check_ids(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(keys[i].text, keys[i - 1].text) == 0)
            report_duplicate(m, &m->entries[keys[i - 1].row],
                             &m->entries[keys[i].row]);
    free(keys);
    return BM_OK;
}

/* Excerpts without an id that begin together. */
static bool begin_together(const bm_manifest *m, const bm_manifest_entry *a,
                           const bm_manifest_entry *b)
{
    return a->made && b->made && is_excerpt(a) && is_excerpt(b) &&
           strcmp(m->text + a->path, m->text + b->path) == 0;
}

/* *twice: two rows have one id, and not because they begin together. */
static bm_status find_duplicates(bm_manifest *m, bool *twice)
{
    sort_key *keys = NULL;

    *twice = false;
    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(keys[i].text, keys[i - 1].text) == 0 &&
            !begin_together(m, &m->entries[keys[i - 1].row],
                            &m->entries[keys[i].row]))
            *twice = true;
    free(keys);
    return BM_OK;
}

/* *out [n] <- the place of each row among those with its id, from 1; 0: it is
 * the only one. free(*out). */
static bm_status count_ids(const bm_manifest *m, size_t **out)
{
    size_t *place = calloc(m->n + 1, sizeof *place);
    sort_key *keys = NULL;

    if (place == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the ids of %s", m->path);
    *out = place;
    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++) {
        size_t *before = &place[keys[i - 1].row];

        if (strcmp(keys[i].text, keys[i - 1].text) != 0)
            continue;
        *before = *before > 0 ? *before : 1;
        place[keys[i].row] = *before + 1;
    }
    free(keys);
    return BM_OK;
}

/* Appends a number to the id of a row, if there is room: else it stays one that
 * occurs twice. */
static bm_status append_number(bm_manifest *m, bm_manifest_entry *e,
                               const char *format, double number)
{
    char id[BM_LONGEST_TAG + 1], text[32];
    int n = 0;

    snprintf(text, sizeof text, format, number);
    n = snprintf(id, sizeof id, "%s%s", m->text + e->id, text);
    return n > 0 && (size_t)n < sizeof id ? keep_id(m, id, &e->id) : BM_OK;
}

/* Appends to ids that were made of excerpts and occur twice the end in
 * milliseconds or, `count`, from the second on a number. */
static bm_status number_duplicates(bm_manifest *m, bool count)
{
    size_t *place = NULL;
    bm_status status = count_ids(m, &place);

    for (size_t i = 0; i < m->n && status == BM_OK; i++) {
        bm_manifest_entry *e = &m->entries[i];

        if (place[i] == 0 || !e->made || !is_excerpt(e))
            continue;
        if (count && place[i] > 1)
            status = append_number(m, e, "-%.0f", (double)place[i]);
        else if (!count && e->duration > 0)
            status =
                append_number(m, e, "-%07.0f", 1000 * (e->start + e->duration));
    }
    free(place);
    return status;
}

bm_status bm_manifest_complete_ids(bm_manifest *m)
{
    bool made = false, twice = false;

    BM_TRY(make_ids(m, false, &made));
    if (!made)
        return bm_manifest_check_ids(m);
    BM_TRY(find_duplicates(m, &twice));
    if (twice)
        BM_TRY(make_ids(m, true, &made));
    BM_TRY(number_duplicates(m, false));
    BM_TRY(number_duplicates(m, true));
    return bm_manifest_check_ids(m);
}

bm_status bm_manifest_number_speakers(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(bm_manifest_entry, speaker), &keys));
    for (size_t i = 0; i < m->n; i++) {
        if (i == 0 || strcmp(keys[i].text, keys[i - 1].text) != 0)
            m->speakers++;
        m->entries[keys[i].row].speaker_number = m->speakers - 1;
    }
    free(keys);
    return BM_OK;
}
