#include "cli/doctor/report.h"

#include <string.h>

static const char *const names[] = {
#define X(name) #name,
    BM_CHECKS(X)
#undef X
};

enum { CHECKS = sizeof names / sizeof names[0] };

json_t *bm_report_new(const char *host)
{
    return json_pack("{s:s, s:{}}", "host", host, "checks");
}

void bm_report_add(json_t *report, const char *check, bm_check_context *e)
{
    json_t *checks = json_object_get(report, "checks");
    json_t *old = json_object_get(checks, check);

    if (old == NULL) {
        old = json_pack("{s:{}, s:[]}", "facts", "findings");
        json_object_set_new(checks, check, old);
    }
    json_object_update(json_object_get(old, "facts"), e->facts);
    json_array_extend(json_object_get(old, "findings"), e->findings);
    json_object_clear(e->facts);
    json_array_clear(e->findings);
}

json_t *bm_report_facts(const json_t *job, const char *check)
{
    json_t *out = json_array();

    for (size_t r = 0; r < json_array_size(job); r++) {
        const json_t *rank = json_array_get(job, r);
        json_t *facts = json_object_get(
            json_object_get(json_object_get(rank, "checks"), check), "facts");

        json_array_append_new(out, json_pack("{s:O, s:O?}", "host",
                                             json_object_get(rank, "host"),
                                             "facts", facts));
    }
    return out;
}

/* ---- merging ------------------------------------------------------------- */

static bool equal(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key)) != 0;
}

/* The finding of the list that says the same of another host; NULL: none. */
static json_t *same(const json_t *list, const json_t *finding)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *old = json_array_get(list, i);

        if (equal(old, finding, "check") && equal(old, finding, "severity") &&
            equal(old, finding, "text") && equal(old, finding, "remedy"))
            return old;
    }
    return NULL;
}

static bool has(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

/* Adds a finding of a host; host NULL: of all together. */
static void merge(json_t *out, const char *check, const json_t *finding,
                  json_t *host)
{
    json_t *copy = json_copy((json_t *)finding), *old = NULL;

    json_object_set_new(copy, "check", json_string(check));
    old = same(out, copy);
    if (old == NULL) {
        json_object_set_new(copy, "hosts", json_array());
        json_array_append(out, copy);
        old = copy;
    }
    if (host != NULL && !has(json_object_get(old, "hosts"), host))
        json_array_append(json_object_get(old, "hosts"), host);
    json_decref(copy);
}

static const char *text(const json_t *o, const char *key)
{
    const char *value = json_string_value(json_object_get(o, key));
    return value != NULL ? value : "";
}

/* faults: findings that are fine are left out. */
static void merge_all(json_t *out, const char *check, const json_t *list,
                      json_t *host, bool faults)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *finding = json_array_get(list, i);

        if (!faults ||
            strcmp(text(finding, "severity"), bm_severity_word(BM_FINE)) != 0)
            merge(out, check, finding, host);
    }
}

/* Whether an earlier rank is on the host of this one. */
static bool is_another(const json_t *job, size_t rank)
{
    for (size_t r = 0; r < rank; r++)
        if (equal(json_array_get(job, r), json_array_get(job, rank), "host"))
            return true;
    return false;
}

static const json_t *findings_of(const json_t *rank, const char *check)
{
    return json_object_get(
        json_object_get(json_object_get(rank, "checks"), check), "findings");
}

json_t *bm_report_findings(const json_t *job, const json_t *mine)
{
    json_t *out = json_array();

    for (size_t c = 0; c < CHECKS; c++) {
        for (size_t r = 0; r < json_array_size(job); r++) {
            const json_t *rank = json_array_get(job, r);

            merge_all(out, names[c], findings_of(rank, names[c]),
                      json_object_get(rank, "host"), is_another(job, r));
        }
        merge_all(out, names[c], json_object_get(mine, names[c]), NULL, false);
    }
    merge_all(out, "start", json_object_get(mine, "start"), NULL, false);
    return out;
}

size_t bm_report_hosts(const json_t *job)
{
    json_t *list = json_array();
    size_t n = 0;

    for (size_t r = 0; r < json_array_size(job); r++) {
        json_t *host = json_object_get(json_array_get(job, r), "host");

        if (!has(list, host))
            json_array_append(list, host);
    }
    n = json_array_size(list);
    json_decref(list);
    return n;
}

/* ---- printing ------------------------------------------------------------ */

int bm_report_fatal(const json_t *findings)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(findings); i++)
        n += strcmp(text(json_array_get(findings, i), "severity"),
                    bm_severity_word(BM_FATAL)) == 0;
    return n;
}

/* "on n1, n2: ", "on 17 hosts: ", or nothing where there is one host, or where
 * all hosts say the same. */
static void print_hosts(const json_t *list, size_t hosts, FILE *out)
{
    size_t n = json_array_size(list);

    if (hosts < 2 || n == 0)
        return;
    if (n == hosts) {
        fprintf(out, "all hosts: ");
        return;
    }
    for (size_t i = 0; i < n && n <= 4; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "",
                json_string_value(json_array_get(list, i)));
    if (n > 4)
        fprintf(out, "%s and %zu more hosts",
                json_string_value(json_array_get(list, 0)), n - 1);
    fprintf(out, ": ");
}

void bm_report_print(const json_t *findings, size_t hosts, FILE *out)
{
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *f = json_array_get(findings, i);

        fprintf(out, "%-8s %-8s ", text(f, "severity"), text(f, "check"));
        print_hosts(json_object_get(f, "hosts"), hosts, out);
        fputs(text(f, "text"), out);
        if (text(f, "remedy")[0] != '\0')
            fprintf(out, "; %s", text(f, "remedy"));
        fputc('\n', out);
    }
}
