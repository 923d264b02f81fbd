#include "cli/tune/search.h"

#include "core/rng.h"
#include "core/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TRIES = 200,    /* points of the sequence in search of a good one */
    CANDIDATES = 500,    /* points of the sequence that the model compares */
    NEIGHBOURS = 200,    /* points around the best one, likewise */
    MOST_MODELLED = 300, /* results that the model takes */
    MOST_PENDING = 100,  /* and running jobs */
    UNMODELLED = 4,      /* each fourth point comes from the sequence */
};

typedef struct trial {
    bm_search_origin origin;
    int rung;                      /* the last one that was handed out */
    double end;                    /* of that job on the virtual clock */
    int known;                     /* rungs that have ended on the clock */
    double score[BM_SEARCH_RUNGS]; /* NAN: not told yet */
} trial;

struct bm_search {
    bm_search_settings set;
    bm_search_space space;
    double *points; /* [room, d]; the given one comes first */
    double *given;  /* [d] */
    trial *trials;  /* [room] */
    size_t n, room;
    double now, spent; /* in epochs */
    uint64_t drawn;    /* points taken from the sequence */
    bm_grade usual;    /* of the last one that became a trial */
    bool none_left;    /* no new point is to be had */
    bool over;         /* a job did not fit into the budget */
    double golden[BM_GAUSS_AXES], shift[BM_GAUSS_AXES];
};

/* The sequence adds 1 / phi, 1 / phi^2, .. to its axes, where phi is the root
 * of phi^(d + 1) = phi + 1: the golden ratio for d = 1. */
static void start_sequence(bm_search *s)
{
    bm_rng rng = bm_rng_make(s->set.seed, "tune.sequence", 0);
    double phi = 2;

    for (int i = 0; i < 64; i++)
        phi = pow(1 + phi, 1 / (double)(s->set.axes + 1));
    for (size_t k = 0; k < s->set.axes; k++) {
        s->golden[k] = pow(phi, -(double)(k + 1));
        s->shift[k] = bm_rng_uniform(&rng);
    }
}

bm_status bm_search_new(bm_search **out, const bm_search_settings *settings,
                        bm_search_space space)
{
    bm_search *s = calloc(1, sizeof *s);
    size_t bytes = settings->axes * sizeof *s->given;

    BM_ASSERT(settings->axes >= 1 && settings->axes <= BM_SEARCH_AXES);
    BM_ASSERT(settings->rungs >= 1 && settings->rungs <= BM_SEARCH_RUNGS);
    BM_ASSERT(settings->reduction >= 2 && settings->slots >= 1);
    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a search");
    s->set = *settings;
    s->space = space;
    start_sequence(s);
    if (settings->given != NULL) {
        s->given = malloc(bytes);
        if (s->given == NULL) {
            bm_search_free(s);
            return BM_FAIL(BM_ERR_MEMORY, "no memory for a search");
        }
        memcpy(s->given, settings->given, bytes);
    }
    s->set.given = s->given;
    *out = s;
    return BM_OK;
}

void bm_search_free(bm_search *s)
{
    if (s == NULL)
        return;
    free(s->points);
    free(s->given);
    free(s->trials);
    free(s);
}

/* ---- new points ---------------------------------------------------------- */

static void draw(bm_search *s, double *x)
{
    s->drawn++;
    for (size_t k = 0; k < s->set.axes; k++)
        x[k] = fmod(s->shift[k] + (double)s->drawn * s->golden[k], 1);
}

/* The next good point of the sequence; if there is none in MOST_TRIES, the first of
 * the best grade among these. The sequence goes on after the point that is taken. */
static bool draw_new(bm_search *s, double *x)
{
    uint64_t taken = 0;
    bm_grade best = BM_REFUSED;

    for (int i = 0; i < MOST_TRIES && best != BM_GOOD; i++) {
        bm_grade grade = BM_REFUSED;

        draw(s, x);
        grade = s->space.grade(s->space.self, x);
        if (grade < best) {
            best = grade;
            taken = s->drawn;
        }
    }
    if (best == BM_REFUSED)
        return false;
    s->usual = best;
    s->drawn = taken - 1;
    draw(s, x);
    return true;
}

static bool runs(const trial *t)
{
    return t->known <= t->rung;
}

static bool failed(const trial *t)
{
    return t->known > 0 && isinf(t->score[t->known - 1]);
}

/* Whether the model takes the results of a trial. */
static bool is_modelled(const bm_search *s, size_t i)
{
    return !s->set.given_apart || s->trials[i].origin != BM_ORIGIN_GIVEN;
}

/* Results of all rungs so far, as far as they have ended on the clock. */
static size_t results(const bm_search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += is_modelled(s, i) ? (size_t)s->trials[i].known : 0;
    return n;
}

/* A row of the model: the point, and how far it was trained, from 0 to 1. */
static void put_row(const bm_search *s, size_t i, int rung, double *row)
{
    memcpy(row, s->points + i * s->set.axes, s->set.axes * sizeof *row);
    row[s->set.axes] =
        s->set.rungs > 1 ? (double)rung / (double)(s->set.rungs - 1) : 1;
}

/* y [n] -> its median, the upper one of two; y is sorted. */
static double median(double *y, size_t n)
{
    bm_sort(y, n);
    return y[n / 2];
}

/* Limits scores to the median, failures included: large ones would hide the
 * differences between good trials. y [n] */
static void level(double *y, size_t n)
{
    double sorted[MOST_MODELLED], middle = 0;

    memcpy(sorted, y, n * sizeof *y);
    middle = n > 0 ? median(sorted, n) : 0;
    for (size_t i = 0; i < n; i++)
        y[i] = fmin(y[i], isfinite(middle) ? middle : 0);
}

/* The last rung before `rung` that trial i has a finite score of; -1: none. */
static int rung_before(const trial *t, int rung)
{
    while (--rung >= 0)
        if (rung < t->known && isfinite(t->score[rung]))
            break;
    return rung;
}

/* change[r]: what training from the first rung to rung r does to a score, the
 * median over the trials that reached it. Scores of different rungs can be compared
 * only without it: all of the first rung are worse than those of the last. */
static void find_changes(const bm_search *s, double change[BM_SEARCH_RUNGS])
{
    double found[MOST_MODELLED];

    change[0] = 0;
    for (int rung = 1; rung < s->set.rungs; rung++) {
        size_t n = 0;

        for (size_t i = s->n; i-- > 0 && n < MOST_MODELLED;) {
            const trial *t = &s->trials[i];
            int before = rung_before(t, rung);

            if (rung < t->known && isfinite(t->score[rung]) && before >= 0)
                found[n++] = change[before] + t->score[rung] - t->score[before];
        }
        change[rung] = n > 0 ? median(found, n) : change[rung - 1];
    }
}

/* The newest MOST_MODELLED results, each as it would be at the end of training if
 * all trials improved alike. x [room, d + 1], y [room]. */
static size_t collect(const bm_search *s, double *x, double *y)
{
    double change[BM_SEARCH_RUNGS];
    size_t n = 0;

    find_changes(s, change);
    for (size_t i = s->n; i-- > 0;)
        for (int rung = s->trials[i].known; rung-- > 0;) {
            if (n == MOST_MODELLED || !is_modelled(s, i))
                break;
            put_row(s, i, rung, x + n * (s->set.axes + 1));
            y[n++] = s->trials[i].score[rung] - change[rung] +
                     change[s->set.rungs - 1];
        }
    level(y, n);
    return n;
}

/* Adds the running jobs with the results that the model expects, so that the
 * next point is not proposed twice ("kriging believer", Ginsbourger et al.
 * 2010). */
static size_t add_pending(const bm_search *s, const bm_gauss *g, double *x,
                          double *y, size_t n)
{
    double deviation = 0;

    for (size_t i = s->n; i-- > 0 && n < MOST_MODELLED + MOST_PENDING;) {
        double *row = x + n * (s->set.axes + 1);

        if (!runs(&s->trials[i]) || !is_modelled(s, i))
            continue;
        put_row(s, i, s->trials[i].rung, row);
        bm_gauss_predict(g, row, &y[n], &deviation);
        n++;
    }
    return n;
}

/* A point near `best`, by a tenth of the range or of the axis' length. */
static void draw_near(const bm_search *s, const bm_gauss *g, bm_rng *rng,
                      const double *best, double *x)
{
    for (size_t k = 0; k < s->set.axes; k++) {
        double step = fmin(0.1, 0.2 * bm_gauss_length(g, k));
        x[k] = fmin(fmax(best[k] + step * bm_rng_normal(rng), 0), 1 - 1e-9);
    }
}

typedef struct candidate {
    double x[BM_GAUSS_AXES];
    double improvement;
} candidate;

static int by_improvement(const void *a, const void *b)
{
    double x = ((const candidate *)a)->improvement;
    double y = ((const candidate *)b)->improvement;

    return (x < y) - (x > y);
}

/* The first candidate that is as good as what the sequence has; if none is, the
 * first of the best grade. */
static bool take_best(const bm_search *s, const candidate *list, double *out)
{
    bm_grade best = BM_REFUSED;

    for (size_t i = 0; i < CANDIDATES + NEIGHBOURS; i++) {
        bm_grade grade = s->space.grade(s->space.self, list[i].x);

        if (grade >= best)
            continue;
        memcpy(out, list[i].x, s->set.axes * sizeof *out);
        best = grade;
        if (best <= s->usual)
            break;
    }
    return best != BM_REFUSED;
}

/* Of many points, one of the best grade with the largest improvement expected at
 * the end of training. x [n, d + 1]: the rows of the model. */
static bool choose(bm_search *s, const bm_gauss *g, size_t n, const double *x,
                   candidate *list, double *out)
{
    bm_rng rng = bm_rng_make(s->set.seed, "tune.near", s->n);
    size_t d = s->set.axes;
    double best[BM_GAUSS_AXES] = {0}, row[BM_GAUSS_AXES];
    double least = INFINITY, mean = 0, deviation = 0;

    for (size_t i = 0; i < n; i++) {
        memcpy(row, x + i * (d + 1), d * sizeof *row);
        row[d] = 1;
        bm_gauss_predict(g, row, &mean, &deviation);
        if (mean < least)
            memcpy(best, row, sizeof best);
        least = fmin(least, mean);
    }
    for (size_t i = 0; i < CANDIDATES + NEIGHBOURS; i++) {
        if (i < CANDIDATES)
            draw(s, list[i].x);
        else
            draw_near(s, g, &rng, best, list[i].x);
        list[i].x[d] = 1;
        list[i].improvement = bm_gauss_improvement(g, list[i].x, least);
    }
    qsort(list, CANDIDATES + NEIGHBOURS, sizeof *list, by_improvement);
    return take_best(s, list, out);
}

/* *found is false if the space takes none of the model's points. */
static bm_status ask_model(bm_search *s, double *out, bool *found)
{
    size_t room = MOST_MODELLED + MOST_PENDING, d = s->set.axes + 1;
    double *x = malloc(room * d * sizeof *x), *y = malloc(room * sizeof *y);
    candidate *list = calloc(CANDIDATES + NEIGHBOURS, sizeof *list);
    size_t n = 0, all = 0;
    bm_gauss *g = NULL;
    bm_status status = BM_OK;

    if (x == NULL || y == NULL || list == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a model of the trials");
    n = collect(s, x, y);
    BM_TRY_DONE(bm_gauss_fit(&g, n, d, x, y));
    all = add_pending(s, g, x, y, n);
    if (all > n) {
        bm_gauss_free(g);
        g = NULL;
        BM_TRY_DONE(bm_gauss_fit(&g, all, d, x, y));
    }
    *found = choose(s, g, all, x, list, out);
done:
    bm_gauss_free(g);
    free(x);
    free(y);
    free(list);
    return status;
}

static bm_status propose(bm_search *s, double *x, bm_search_origin *origin,
                         bool *found)
{
    bool modelled =
        s->set.model && s->n % UNMODELLED != 0 && results(s) >= s->set.axes + 3;

    *found = false;
    if (s->n == 0 && s->given != NULL) {
        memcpy(x, s->given, s->set.axes * sizeof *x);
        *origin = BM_ORIGIN_GIVEN;
        *found = s->space.grade(s->space.self, x) != BM_REFUSED;
        if (*found)
            return BM_OK;
    }
    if (modelled) {
        *origin = BM_ORIGIN_MODEL;
        BM_TRY(ask_model(s, x, found));
        if (*found)
            return BM_OK;
    }
    *origin = BM_ORIGIN_SEQUENCE;
    *found = draw_new(s, x);
    return BM_OK;
}

static bm_status make_room(bm_search *s)
{
    size_t room = 2 * s->room + 16, d = s->set.axes;
    double *points = NULL;
    trial *trials = NULL;

    if (s->n < s->room)
        return BM_OK;
    points = realloc(s->points, room * d * sizeof *points);
    if (points != NULL)
        s->points = points;
    trials = realloc(s->trials, room * sizeof *trials);
    if (trials != NULL)
        s->trials = trials;
    if (points == NULL || trials == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu trials", room);
    s->room = room;
    return BM_OK;
}

/* ---- the clock ----------------------------------------------------------- */

const double *bm_search_point(const bm_search *s, size_t i)
{
    return s->points + i * s->set.axes;
}

/* Epochs of a job. */
static double cost(const bm_search *s, const double *x, int rung)
{
    long before = rung > 0 ? s->space.epochs(s->space.self, x, rung - 1) : 0;

    return (double)(s->space.epochs(s->space.self, x, rung) - before);
}

/* Whether the budget has room for the job; then it takes its part. */
static bool hand_out(bm_search *s, bm_search_job job)
{
    trial *t = &s->trials[job.trial];
    double epochs = cost(s, bm_search_point(s, job.trial), job.rung);
    double spent = s->spent + (t->origin == BM_ORIGIN_GIVEN ? 0 : epochs);

    if (spent > s->set.epochs)
        return false;
    t->rung = job.rung;
    t->end = s->now + epochs;
    s->spent = spent;
    if (job.trial == s->n) /* a new one */
        s->n++;
    return true;
}

/* The place of a trial among the results of a rung, from 0. */
static size_t place(const bm_search *s, size_t i, int rung)
{
    double own = s->trials[i].score[rung];
    size_t better = 0;

    for (size_t k = 0; k < s->n; k++)
        if (k != i && s->trials[k].known > rung)
            better += s->trials[k].score[rung] < own ||
                      (s->trials[k].score[rung] == own && k < i);
    return better;
}

static bool promotable(const bm_search *s, size_t i, int rung)
{
    const trial *t = &s->trials[i];
    size_t ended = 0;

    if (t->rung != rung || runs(t) || failed(t))
        return false;
    for (size_t k = 0; k < s->n; k++)
        ended += s->trials[k].known > rung;
    return place(s, i, rung) < ended / (size_t)s->set.reduction;
}

/* *out: the best trial that may go on, from the highest rung that has one. */
static bool promote(bm_search *s, bm_search_job *out)
{
    for (int rung = s->set.rungs - 2; rung >= 0; rung--) {
        size_t best = s->n;

        for (size_t i = 0; i < s->n; i++)
            if (promotable(s, i, rung) &&
                (best == s->n ||
                 s->trials[i].score[rung] < s->trials[best].score[rung]))
                best = i;
        if (best == s->n)
            continue;
        *out = (bm_search_job){best, rung + 1};
        return true;
    }
    return false;
}

/* *out: a new trial, which has not begun yet. */
static bm_status propose_trial(bm_search *s, bm_search_job *out, bool *found)
{
    trial t = {0};

    *found = false;
    if (s->none_left || s->n >= s->set.trials)
        return BM_OK;
    BM_TRY(make_room(s));
    BM_TRY(propose(s, s->points + s->n * s->set.axes, &t.origin, found));
    s->none_left = !*found;
    for (int k = 0; k < BM_SEARCH_RUNGS; k++)
        t.score[k] = NAN;
    s->trials[s->n] = t;
    *out = (bm_search_job){s->n, 0};
    return BM_OK;
}

/* The next job, whatever is left of the budget: else a search with a larger one
 * would go another way. If it does not fit, there are no more. */
static bm_status begin(bm_search *s, bm_search_job *out, bool *begun)
{
    bool found = promote(s, out);

    if (!found)
        BM_TRY(propose_trial(s, out, &found));
    *begun = found && hand_out(s, *out);
    s->over = found && !*begun;
    return BM_OK;
}

/* The running job that ends first on the clock; n: none runs. */
static size_t next_to_end(const bm_search *s, int *running)
{
    size_t first = s->n;

    *running = 0;
    for (size_t i = 0; i < s->n; i++) {
        const trial *t = &s->trials[i];

        if (!runs(t))
            continue;
        ++*running;
        if (first == s->n || t->end < s->trials[first].end)
            first = i;
    }
    return first;
}

bm_status bm_search_next(bm_search *s, bm_search_job *out,
                         bm_search_state *state)
{
    bool begun = false;

    for (;;) {
        int running = 0;
        size_t first = next_to_end(s, &running);
        trial *t = NULL;

        *state = BM_SEARCH_JOB;
        if (!s->over && running < s->set.slots) {
            BM_TRY(begin(s, out, &begun));
            if (begun)
                return BM_OK;
        }
        *state = BM_SEARCH_END;
        if (running == 0)
            return BM_OK;
        *state = BM_SEARCH_WAIT;
        t = &s->trials[first];
        if (isnan(t->score[t->rung]))
            return BM_OK;
        s->now = t->end;
        t->known = t->rung + 1;
    }
}

void bm_search_tell(bm_search *s, bm_search_job job, double score)
{
    BM_ASSERT(job.trial < s->n && job.rung == s->trials[job.trial].rung);
    BM_ASSERT(!isnan(score));
    s->trials[job.trial].score[job.rung] = score;
}

/* ---- what is known ------------------------------------------------------- */

size_t bm_search_trials(const bm_search *s)
{
    return s->n;
}

bm_search_origin bm_search_origin_of(const bm_search *s, size_t i)
{
    return s->trials[i].origin;
}

double bm_search_score(const bm_search *s, size_t i, int rung)
{
    return s->trials[i].score[rung];
}

int bm_search_rung(const bm_search *s, size_t i)
{
    int rung = s->set.rungs - 1;

    while (rung >= 0 && isnan(s->trials[i].score[rung]))
        rung--;
    return rung;
}

bm_status bm_search_model(const bm_search *s, bm_gauss **out)
{
    size_t d = s->set.axes + 1, n = 0;
    double *x = malloc(MOST_MODELLED * d * sizeof *x);
    double *y = malloc(MOST_MODELLED * sizeof *y);
    bm_status status = BM_OK;

    *out = NULL;
    if (x == NULL || y == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a model of the trials");
    n = collect(s, x, y);
    if (n >= d + 2)
        status = bm_gauss_fit(out, n, d, x, y);
done:
    free(x);
    free(y);
    return status;
}

double bm_search_spent(const bm_search *s)
{
    return s->spent;
}

static bool precedes(const bm_search *s, size_t a, size_t b)
{
    int rung_a = bm_search_rung(s, a), rung_b = bm_search_rung(s, b);
    double x = rung_a < 0 ? INFINITY : s->trials[a].score[rung_a];
    double y = rung_b < 0 ? INFINITY : s->trials[b].score[rung_b];

    if (isinf(x) != isinf(y))
        return isinf(y);
    if (rung_a != rung_b)
        return rung_a > rung_b;
    return x != y ? x < y : a < b;
}

void bm_search_rank(const bm_search *s, size_t *out)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t at = i;

        for (; at > 0 && precedes(s, i, out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
}
