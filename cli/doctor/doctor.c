/*
 * doctor.c - bmuf doctor: runs the checks of doctor.h on every host and prints
 * what they found. Each rank first looks at its own host; rank 0 collects that,
 * so that it is known if the ranks then fail to exchange anything.
 */
#include "cli/doctor/check.h"

#include "cli/doctor/links.h"
#include "cli/doctor/report.h"
#include "cli/doctor/timed_check.h"
#include "cli/json_output.h"
#include "cli/launch/processes.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/text/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const bm_check *const checks[] = {
#define X(name) &bm_check_##name,
    BM_CHECKS(X)
#undef X
};

enum { CHECKS = sizeof checks / sizeof checks[0], MOST_BYTES = 1 << 24 };

#define GRACE_S 5 /* for rank 0 to say first what has not ended */

typedef struct session {
    bm_check_target target;
    bm_config *config; /* NULL: none was given */
    bm_settings set;
    bm_comm *comm;
    bool json;
    json_t *report;           /* of this rank: what it has not sent yet */
    json_t *job;              /* on rank 0: the reports of all ranks */
    json_t *mine;             /* on rank 0: findings of comparisons */
    bm_check_context context; /* of the check that all ranks are at */
    const bm_check *check;
    bool left_behind; /* a thread still runs */
} session;

/* ---- output -------------------------------------------------------------- */

static void compare_all(session *s)
{
    for (size_t c = 0; c < CHECKS; c++) {
        bm_check_context e = {.target = &s->target,
                              .facts = json_object(),
                              .findings = json_array()};
        json_t *facts = bm_report_facts(s->job, checks[c]->name);
        json_t *list = json_object_get(s->mine, checks[c]->name);

        if (checks[c]->compare != NULL)
            checks[c]->compare(&e, facts);
        if (list == NULL)
            json_object_set(s->mine, checks[c]->name, e.findings);
        else
            json_array_extend(list, e.findings);
        json_decref(facts);
        json_decref(e.facts);
        json_decref(e.findings);
    }
}

static void print_json(const session *s, json_t *findings, bool starts)
{
    json_t *facts = bm_report_facts(s->job, "network");

    bm_json_print(json_pack("{s:b, s:O, s:O, s:o*}", "would_start", starts,
                            "findings", findings, "ranks", s->job, "network",
                            bm_links_network(facts)),
                  JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(facts);
}

static void print_text(const session *s, const json_t *findings)
{
    json_t *facts = bm_report_facts(s->job, "network");

    bm_report_print(findings, bm_report_hosts(s->job), stdout);
    bm_links_print(facts, stdout);
    json_decref(facts);
}

/* On rank 0. Returns how many findings keep a job from starting. */
static int print(session *s)
{
    json_t *findings = NULL;
    int fatal = 0;

    compare_all(s);
    findings = bm_report_findings(s->job, s->mine);
    fatal = bm_report_fatal(findings);
    if (s->json)
        print_json(s, findings, fatal == 0);
    else
        print_text(s, findings);
    json_decref(findings);
    return fatal;
}

/* ---- collecting ---------------------------------------------------------- */

/* On rank 0: adds the report of a rank to what is known of it. */
static bm_status add_report(session *s, size_t rank, json_t *report)
{
    json_t *known = json_array_get(s->job, rank), *of = NULL;
    const char *name = NULL;

    if (report == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "the report of rank %zu is no JSON",
                       rank);
    if (known == NULL) {
        json_array_append_new(s->job, json_deep_copy(report));
        return BM_OK;
    }
    json_object_foreach(json_object_get(report, "checks"), name, of)
    {
        bm_check_context e = {
            .facts = json_incref(json_object_get(of, "facts")),
            .findings = json_incref(json_object_get(of, "findings"))};

        if (e.facts != NULL && e.findings != NULL)
            bm_report_add(known, name, &e);
        json_decref(e.facts);
        json_decref(e.findings);
    }
    return BM_OK;
}

static bm_status receive_report(session *s, int rank, int64_t length)
{
    char *text = NULL;
    json_t *report = NULL;
    bm_status status = BM_OK;

    if (length < 0 || length > MOST_BYTES)
        return BM_FAIL(BM_ERR_FORMAT, "the report of rank %d is too long",
                       rank);
    text = malloc((size_t)length + 1);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a report");
    bm_comm_receive_bytes(s->comm, text, (size_t)length, rank);
    status = bm_comm_wait(s->comm);
    if (status == BM_OK) {
        report = json_loadb(text, (size_t)length, 0, NULL);
        status = add_report(s, (size_t)rank, report);
    }
    json_decref(report);
    free(text);
    return status;
}

/* Collective. Sends what ranks have found since the last time to rank 0. */
static bm_status collect(session *s)
{
    int size = bm_comm_size(s->comm), rank = bm_comm_rank(s->comm);
    int64_t *length = calloc((size_t)size, sizeof *length);
    char *text = json_dumps(s->report, JSON_COMPACT);
    bm_status status = BM_OK;

    if (length == NULL || text == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a report");
    BM_TRY_DONE(bm_comm_agree(s->comm, status));
    BM_ASSERT(length != NULL && text != NULL);
    length[rank] = (int64_t)strlen(text);
    BM_TRY_DONE(bm_comm_sum_ints(s->comm, length, (size_t)size));
    if (rank == 0)
        BM_TRY_DONE(add_report(s, 0, s->report));
    for (int r = 1; r < size && rank == 0; r++)
        BM_TRY_DONE(receive_report(s, r, length[r]));
    if (rank > 0) {
        bm_comm_send_bytes(s->comm, text, strlen(text), 0);
        status = bm_comm_wait(s->comm);
    }
    json_object_clear(json_object_get(s->report, "checks"));
done:
    free(text);
    free(length);
    return status;
}

/* ---- checks -------------------------------------------------------------- */

/* Ranks wait for each other and do not end: says so on rank 0, and ends. */
static void give_up(void *self)
{
    session *s = self;
    const char *name = s->check != NULL ? s->check->name : "start";
    bm_check_context e = {.facts = json_object(), .findings = json_array()};

    if (bm_comm_rank(s->comm) == 0) {
        bm_find(&e, BM_FATAL,
                "see which host does not answer; leave it out, and repeat",
                "ranks wait for each other without end: %s",
                s->context.doing[0] != '\0' ? s->context.doing
                                            : "a rank does not answer");
        json_object_set(s->mine, name, e.findings);
        (void)print(s);
        fflush(stdout);
    }
    _exit(bm_status_exit(BM_ERR_DEVICE));
}

static void guard(session *s, double seconds)
{
    bool first = bm_comm_rank(s->comm) == 0;

    bm_guard_begin(seconds + (first ? 0 : GRACE_S), give_up, s);
}

static bm_status check_hosts(session *s)
{
    double seconds = GRACE_S;
    bm_status status = BM_OK;

    for (size_t c = 0; c < CHECKS; c++) {
        if (checks[c]->host == NULL)
            continue;
        seconds += checks[c]->seconds;
        if (!bm_timed_check_run(checks[c], &s->target, s->report))
            s->left_behind = true;
    }
    snprintf(s->context.doing, sizeof s->context.doing,
             "a rank does not say what it found on its host");
    guard(s, seconds); /* others may be slower */
    status = collect(s);
    bm_guard_end();
    return status;
}

static bm_status meet(session *s, const bm_check *check)
{
    bm_status status = BM_OK;

    s->check = check;
    s->context = (bm_check_context){.target = &s->target,
                                    .comm = s->comm,
                                    .facts = json_object(),
                                    .findings = json_array()};
    guard(s, check->seconds);
    status = bm_comm_agree(s->comm, check->together(&s->context));
    bm_report_add(s->report, check->name, &s->context);
    if (status == BM_OK)
        status = collect(s);
    bm_guard_end();
    json_decref(s->context.facts);
    json_decref(s->context.findings);
    return status;
}

static bool fits(const session *s, long ranks)
{
    return s->config == NULL ||
           bm_settings_fit(s->config, &s->set, ranks) == BM_OK;
}

/* A finding of the start: the last failure, each line of it or all in one. */
static void find_start(session *s, bool lines)
{
    bm_check_context e = {.findings = json_array()};
    char text[4000], *rest = text;
    const char *line = NULL;

    snprintf(text, sizeof text, "%s", bm_last_message());
    if (!lines)
        bm_find(&e, BM_FATAL, "", "%s", text);
    while (lines && (line = strtok_r(rest, "\n", &rest)) != NULL)
        bm_find(&e, BM_FATAL, "", "%s", line + strspn(line, " "));
    json_object_set_new(s->mine, "start", e.findings);
}

/* Collective. */
static bm_status examine(session *s)
{
    int fatal = 0;

    if (!fits(s, bm_comm_size(s->comm)) && bm_comm_rank(s->comm) == 0)
        find_start(s, false);
    BM_TRY(check_hosts(s));
    for (size_t c = 0; c < CHECKS; c++)
        if (checks[c]->together != NULL)
            BM_TRY(meet(s, checks[c]));
    if (bm_comm_rank(s->comm) == 0)
        fatal = print(s);
    BM_TRY(bm_comm_max(s->comm, &fatal, 1));
    if (fatal > 0)
        return bm_comm_agree(
            s->comm, BM_FAIL(BM_ERR_DEVICE, "%s would keep a job from starting",
                             bm_count_noun(fatal, "finding").text));
    return BM_OK;
}

/* ---- the verb ------------------------------------------------------------ */

/* The folder of the data, and the device, of a configuration. */
static bm_status read_config(const bm_arguments *a, session *s)
{
    BM_TRY(bm_settings_read(a, a->nouns[0], &s->config, &s->set));
    s->target.data = s->set.data.train;
    s->target.others[0] = s->set.data.dev;
    s->target.others[1] = s->set.data.test;
    s->target.device = s->set.job.device;
    return BM_OK;
}

static void begin(session *s)
{
    char host[256] = "?";

    gethostname(host, sizeof host - 1);
    s->report = bm_report_new(host);
    s->job = json_array();
    s->mine = json_object();
}

static void end(session *s)
{
    json_decref(s->report);
    json_decref(s->job);
    json_decref(s->mine);
}

/* A job cannot start, for the reason of the last failure: says so, and what can
 * be said of this host alone. lines: hosts cannot take part, a line each. */
static bm_status examine_here(session *s, bool lines)
{
    int fatal = 0;

    begin(s);
    find_start(s, lines);
    for (size_t c = 0; c < CHECKS; c++)
        if (checks[c]->host != NULL &&
            !bm_timed_check_run(checks[c], &s->target, s->report))
            s->left_behind = true;
    json_array_append(s->job, s->report);
    fatal = print(s);
    end(s);
    return BM_FAIL(BM_ERR_DEVICE, "%s would keep a job from starting",
                   bm_count_noun(fatal, "finding").text);
}

/* The plan of the job has no limit on pauses: checks have limits of their
 * own. */
static bm_status start(const bm_arguments *a, session *s)
{
    bm_job_plan plan = bm_job_defaults;
    long ranks = 0;
    bm_status status = bm_job_ranks(a, s->target.folder, &ranks);

    plan.launch.limits.hang_s = 0;
    if (status == BM_ERR_COMM)
        return examine_here(s, true);
    BM_TRY(status);
    if (!fits(s, ranks))
        return examine_here(s, false);
    bm_job_one_a_host();
    BM_TRY(bm_job_start(a, &plan, &s->comm));
    if (s->comm == NULL)
        return BM_OK;
    begin(s);
    status = examine(s);
    end(s);
    return status;
}

static bm_status doctor(const bm_arguments *a)
{
    static session s; /* threads that were left behind still read it */
    bm_status status = BM_OK;

    s.target = (bm_check_target){
        .folder = ".", .data = "", .others = {"", ""}, .device = "auto"};
    s.json = bm_argument(a, "json") != NULL;
    if (a->n_nouns > 0)
        BM_TRY_DONE(read_config(a, &s));
    else if (bm_argument(a, "set") != NULL)
        BM_FAIL_DONE(BM_ERR_ARG, "doctor: --set changes a setting of CONFIG; "
                                 "give CONFIG, too");
    BM_TRY_DONE(bm_argument_word(a, "device", BM_DEVICES, s.target.device,
                                 &s.target.device));
    if (bm_argument(a, "folder") != NULL && bm_argument(a, "folder")[0] == '\0')
        BM_FAIL_DONE(BM_ERR_ARG, "doctor: --folder is empty; give a folder");
    if (bm_argument(a, "folder") != NULL)
        s.target.folder = bm_argument(a, "folder");
    status = start(a, &s);
done:
    if (!s.left_behind)
        bm_config_free(s.config);
    return status;
}

static const bm_flag flags[] = {
    BM_ALLOCATION_FLAGS,
    {"device", "cpu|cuda|auto",
     "what is to compute; default: of CONFIG, or auto", 0, false},
    {"folder", "DIR", "folder that all hosts share; default: the current one",
     0, false},
    {"set", "SECTION.KEY=VALUE", "change a setting of CONFIG", 0, true},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_doctor = {
    .name = "doctor",
    .nouns = "[CONFIG]",
    .help =
        "check hosts, folder, clocks, limits, network and GPUs before a job",
    .text =
        "  bmuf doctor\n"
        "  bmuf doctor my.ini -n 2\n"
        "  bmuf doctor -n 2 --json >net.json\n\n"
        "Prints a line for each finding, with what to do. Exits with 0 if a "
        "job would\nstart, also with warnings, and with 69 if it would not. "
        "bmuf scale --network\nreads the .json (docs/jobs/doctor.md).\n",
    .flags = flags,
    .least = 0,
    .most = 1,
    .run = doctor,
};
