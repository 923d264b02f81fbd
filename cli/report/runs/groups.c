#include "cli/report/runs/groups.h"

#include "cli/arguments.h"
#include "cli/report/runs/describe.h"
#include "core/file/file.h"
#include "core/file/search_folder.h"
#include "core/log.h"
#include "core/text/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names -------------------------------------------------------------- */

static size_t length_of(const char *directory)
{
    size_t n = strlen(directory);

    while (n > 1 && directory[n - 1] == '/')
        n--;
    return n;
}

/* The length of the folder, with its slash, that all runs are in; a run can be the
 * folder of another one. */
static size_t common_folder(size_t n, const char *const *directories)
{
    size_t shortest = length_of(directories[0]), same = shortest, folder = 0;

    for (size_t r = 1; r < n; r++) {
        size_t length = length_of(directories[r]);

        shortest = length < shortest ? length : shortest;
        for (size_t i = 0; i < same; i++)
            if (directories[r][i] != directories[0][i])
                same = i;
    }
    for (size_t i = 0; i < same && i + 1 < shortest; i++)
        if (directories[0][i] == '/')
            folder = i + 1;
    return folder;
}

/* The last characters of a long name are those that differ. */
static void set_names(bm_run_set *r, const char *const *directories)
{
    size_t folder = common_folder(r->n, directories);

    for (size_t i = 0; i < r->n; i++) {
        const char *name = directories[i] + folder;
        size_t n = length_of(directories[i]) - folder, from = 0;

        if (n >= sizeof r->names[i])
            from = bm_utf8_cut(name, n - 58);
        snprintf(r->names[i], sizeof r->names[i], "%s%.*s",
                 from > 0 ? ".." : "", (int)(n - from), name + from);
    }
}

/* "digits-4-* (3 runs)": the beginning that the names have in common. */
static void set_group_name(const bm_run_set *r, bm_run_group *g)
{
    const char *first = r->names[g->members[0]];
    size_t same = strlen(first);

    for (size_t i = 1; i < g->n; i++) {
        const char *name = r->names[g->members[i]];

        while (strncmp(first, name, same) != 0)
            same--;
    }
    same = bm_utf8_cut(first, same < 45 ? same : 45);
    if (g->n == 1)
        snprintf(g->name, sizeof g->name, "%s", first);
    else if (same > 0)
        snprintf(g->name, sizeof g->name, "%.*s* (%zu runs)", (int)same, first,
                 g->n);
    else
        snprintf(g->name, sizeof g->name, "%.*s and %zu more",
                 (int)bm_utf8_cut(first, strnlen(first, 30)), first, g->n - 1);
}

/* ---- groups ------------------------------------------------------------- */

static bm_status join(bm_run_set *r, size_t run, const char *band)
{
    bm_run_group *g = r->groups;

    while (g < r->groups + r->n_groups &&
           !bm_differ_in_seed_only(&r->differences, g->members[0], run, band))
        g++;
    if (g == r->groups + r->n_groups) {
        g->members = calloc(r->n, sizeof *g->members);
        if (g->members == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu runs", r->n);
        r->n_groups++;
    }
    g->members[g->n++] = run;
    return BM_OK;
}

void bm_leave_out(bm_left_out *l, const char *name)
{
    if (l->n++ == 0)
        l->first = name;
}

void bm_left_out_warn(const bm_left_out *l)
{
    if (l->n == 1)
        bm_log(BM_WARNING, "%s is left out: it is not a run", l->first);
    if (l->n > 1)
        bm_log(BM_WARNING, "%s and %zu more are left out: they are not runs",
               l->first, l->n - 1);
}

bm_status bm_too_many_runs(const char *verb)
{
    return BM_FAIL(
        BM_ERR_ARG,
        "%s takes at most %d runs; give fewer, as by DIR/trials/t00* "
        "of a search",
        verb, BM_MOST_NOUNS);
}

/* A search has a report of its own. */
static bm_status refuse_search(const char *folder)
{
    char why[2048];
    bm_status status = bm_search_folder_refuse(folder);

    if (status == BM_OK)
        return BM_OK;
    snprintf(why, sizeof why, "%s", bm_last_message());
    return BM_FAIL(status, "%s; its own report is %s/report.html", why, folder);
}

static bool is_given(const char *run, size_t n, const char *const *runs)
{
    for (size_t i = 0; i < n; i++)
        if (bm_is_same_file(run, runs[i]))
            return true;
    return false;
}

/* runs [BM_MOST_NOUNS] <- the directories that are runs, *n_runs of them, each
 * once. Warns of the others; fails if none is a run, or too many are. */
static bm_status find_runs(size_t n, const char *const *directories,
                           const char **runs, size_t *n_runs)
{
    bm_left_out left_out = {0};

    *n_runs = 0;
    for (size_t i = 0; i < n; i++) {
        if (!bm_is_run(directories[i]))
            bm_leave_out(&left_out, directories[i]);
        else if (is_given(directories[i], *n_runs, runs))
            bm_log(BM_WARNING, "%s is given more than once, and shown once",
                   directories[i]);
        else if (*n_runs < BM_MOST_NOUNS)
            runs[(*n_runs)++] = directories[i];
        else
            return bm_too_many_runs("report");
    }
    if (*n_runs == 0) {
        BM_TRY(refuse_search(directories[0]));
        return BM_FAIL(BM_ERR_MISSING,
                       "%s is not a run: it has no journal.jsonl",
                       directories[0]);
    }
    bm_left_out_warn(&left_out);
    return BM_OK;
}

bm_status bm_run_set_read(bm_run_set *r, size_t n,
                          const char *const *directories, const char *band)
{
    const char *runs[BM_MOST_NOUNS];
    size_t n_runs = 0;
    bm_status status = BM_OK;

    *r = (bm_run_set){0};
    BM_TRY(find_runs(n, directories, runs, &n_runs));
    r->all = calloc(n_runs, sizeof *r->all);
    r->names = calloc(n_runs, sizeof *r->names);
    r->groups = calloc(n_runs, sizeof *r->groups);
    if (r->all == NULL || r->names == NULL || r->groups == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu runs", n_runs);
    for (; r->n < n_runs; r->n++)
        BM_TRY_DONE(bm_run_summary_read(&r->all[r->n], runs[r->n]));
    BM_TRY_DONE(bm_differences_read(&r->differences, n_runs, runs));
    set_names(r, runs);
    for (size_t i = 0; i < n_runs; i++)
        BM_TRY_DONE(join(r, i, band));
    for (size_t k = 0; k < r->n_groups; k++)
        set_group_name(r, &r->groups[k]);
done:
    if (status != BM_OK)
        bm_run_set_free(r);
    return status;
}

void bm_run_set_free(bm_run_set *r)
{
    for (size_t i = 0; i < r->n; i++)
        bm_run_summary_free(&r->all[i]);
    for (size_t k = 0; r->groups != NULL && k < r->n_groups; k++)
        free(r->groups[k].members);
    free(r->all);
    free(r->names);
    free(r->groups);
    bm_differences_free(&r->differences);
    *r = (bm_run_set){0};
}
