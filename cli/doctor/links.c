#include "cli/doctor/links.h"

#include "core/sort.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 12, WORST = 8 };

#define SLOW 0.5 /* of the upper quartile of bandwidths */

typedef struct link {
    int a, b;
    double latency_us, gb_per_s;
    bool inside;
} link_of;

typedef struct links {
    link_of *list;
    size_t n;
} links;

static links collect(const json_t *ranks)
{
    links all = {NULL, 0};
    size_t most = 0;

    for (size_t r = 0; r < json_array_size(ranks); r++)
        most += json_array_size(json_object_get(
            json_object_get(json_array_get(ranks, r), "facts"), "links"));
    all.list = calloc(most + 1, sizeof *all.list);
    for (size_t r = 0; r < json_array_size(ranks) && all.list != NULL; r++) {
        const json_t *of = json_object_get(
            json_object_get(json_array_get(ranks, r), "facts"), "links");

        for (size_t i = 0; i < json_array_size(of); i++) {
            const json_t *o = json_array_get(of, i);
            link_of *l = &all.list[all.n++];

            *l = (link_of){(int)json_integer_value(json_object_get(o, "a")),
                           (int)json_integer_value(json_object_get(o, "b")),
                           json_number_value(json_object_get(o, "latency_us")),
                           json_number_value(json_object_get(o, "gb_per_s")),
                           json_is_true(json_object_get(o, "inside"))};
        }
    }
    return all;
}

static const char *host_of(const json_t *ranks, int rank)
{
    const char *name = json_string_value(
        json_object_get(json_array_get(ranks, (size_t)rank), "host"));
    return name != NULL ? name : "?";
}

/* Latencies or bandwidths of links of a kind, in order; free() it. */
static double *sorted(const links *all, bool inside, bool latency, size_t *n)
{
    double *x = calloc(all->n + 1, sizeof *x);

    *n = 0;
    for (size_t i = 0; i < all->n && x != NULL; i++)
        if (all->list[i].inside == inside)
            x[(*n)++] =
                latency ? all->list[i].latency_us : all->list[i].gb_per_s;
    bm_sort(x, *n);
    return x;
}

/* 0: there are none. */
static double median(const links *all, bool inside, bool latency)
{
    size_t n = 0;
    double *x = sorted(all, inside, latency, &n), out = 0;

    if (n > 0)
        out = n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
    free(x);
    return out;
}

/* The upper quartile of bandwidths: with a slow host among three or more, it is
 * that of the others. */
static double usual_bandwidth(const links *all, bool inside)
{
    size_t n = 0;
    double *x = sorted(all, inside, false, &n), out = 0;

    if (n > 0)
        out = x[3 * n / 4];
    free(x);
    return out;
}

/* The slowest of `slow` pairs; a quarter of all pairs is faster than `usual`. */
static void find_slow(bm_check_context *e, const json_t *ranks,
                      const link_of *worst, size_t slow, double usual)
{
    char more[80] = "";

    if (slow > 1)
        snprintf(more, sizeof more, "; %zu more pairs are slow", slow - 1);
    bm_find(e, BM_DOUBTFUL,
            worst->inside
                ? "the host has more ranks than cores, or other load: start "
                  "fewer ranks, or end other programs"
                : "check cable, switch port and interface of the two; choose "
                  "an interface with OMPI_MCA_btl_tcp_if_include=eth0",
            "rank %d on %s and rank %d on %s: %.3g GB/s, but %.3g between "
            "the fastest quarter of pairs%s",
            worst->a, host_of(ranks, worst->a), worst->b,
            host_of(ranks, worst->b), worst->gb_per_s, usual, more);
}

static void compare_kind(bm_check_context *e, const json_t *ranks,
                         const links *all, bool inside)
{
    double usual = usual_bandwidth(all, inside);
    const link_of *worst = NULL;
    size_t n = 0, slow = 0;

    for (size_t i = 0; i < all->n; i++) {
        const link_of *l = &all->list[i];

        n += l->inside == inside;
        if (l->inside != inside || l->gb_per_s >= SLOW * usual)
            continue;
        slow++;
        worst = worst == NULL || l->gb_per_s < worst->gb_per_s ? l : worst;
    }
    if (worst != NULL)
        find_slow(e, ranks, worst, slow, usual);
    if (n > 0)
        bm_find(e, BM_FINE, "",
                "%s %s: %.3g us latency, %.3g GB/s in each direction (medians)",
                bm_count_noun((long long)n, "pair").text,
                inside ? "inside a host" : "of hosts",
                median(all, inside, true), median(all, inside, false));
}

void bm_links_compare(bm_check_context *e, const json_t *ranks)
{
    links all = collect(ranks);

    compare_kind(e, ranks, &all, false);
    compare_kind(e, ranks, &all, true);
    free(all.list);
}

/* ---- output -------------------------------------------------------------- */

static const link_of *between(const links *all, int a, int b)
{
    for (size_t i = 0; i < all->n; i++)
        if ((all->list[i].a == a && all->list[i].b == b) ||
            (all->list[i].a == b && all->list[i].b == a))
            return &all->list[i];
    return NULL;
}

static void print_matrix(const json_t *ranks, const links *all, FILE *out)
{
    int size = (int)json_array_size(ranks);

    fprintf(out,
            "\nlatency in us, GB/s in each direction while both are in "
            "use\n%-16s",
            "");
    for (int b = 0; b < size; b++)
        fprintf(out, " %15.15s", host_of(ranks, b));
    fprintf(out, "\n");
    for (int a = 0; a < size; a++) {
        fprintf(out, "%-16.16s", host_of(ranks, a));
        for (int b = 0; b < size; b++) {
            const link_of *l = between(all, a, b);
            char text[40] = "-";

            if (l != NULL)
                snprintf(text, sizeof text, "%.3g %.3g", l->latency_us,
                         l->gb_per_s);
            fprintf(out, " %15s", text);
        }
        fprintf(out, "\n");
    }
}

static int slower(const void *a, const void *b)
{
    const link_of *x = a, *y = b;
    return (x->gb_per_s > y->gb_per_s) - (x->gb_per_s < y->gb_per_s);
}

static void print_worst(const json_t *ranks, const links *all, FILE *out)
{
    qsort(all->list, all->n, sizeof *all->list, slower);
    fprintf(out, "\nthe slowest pairs              latency us       GB/s\n");
    for (size_t i = 0; i < all->n && i < WORST; i++) {
        const link_of *l = &all->list[i];

        fprintf(out, "%4d %-9.9s %4d %-9.9s %11.3g %10.3g\n", l->a,
                host_of(ranks, l->a), l->b, host_of(ranks, l->b), l->latency_us,
                l->gb_per_s);
    }
}

void bm_links_print(const json_t *ranks, FILE *out)
{
    links all = collect(ranks);

    if (all.n > 0 && json_array_size(ranks) <= TABLE)
        print_matrix(ranks, &all, out);
    else if (all.n > 0)
        print_worst(ranks, &all, out);
    free(all.list);
}

/* The most ranks that one host has. */
static int ranks_of_host(const json_t *ranks)
{
    int most = 0;

    for (size_t r = 0; r < json_array_size(ranks); r++) {
        int n = 0;

        for (size_t q = 0; q < json_array_size(ranks); q++)
            n += strcmp(host_of(ranks, (int)r), host_of(ranks, (int)q)) == 0;
        most = n > most ? n : most;
    }
    return most;
}

json_t *bm_links_network(const json_t *ranks)
{
    links all = collect(ranks);
    json_t *out = all.n > 0 ? json_object() : NULL;

    for (int inside = 0; inside < 2 && all.n > 0; inside++) {
        double gb_per_s = median(&all, inside != 0, false);
        json_t *o =
            json_pack("{s:f, s:f}", "latency_us",
                      median(&all, inside != 0, true), "bandwidth", gb_per_s);

        if (inside != 0)
            json_object_set_new(o, "workers",
                                json_integer(ranks_of_host(ranks)));
        if (gb_per_s > 0)
            json_object_set(out, inside != 0 ? "inside" : "link", o);
        json_decref(o);
    }
    free(all.list);
    return out;
}
