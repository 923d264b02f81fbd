/*
 * cuda_lstm_choice.c - which engine computes an LSTM: the fastest, timed at the
 * first batch of its kind and written down in a file, a line each:
 *
 *     device, libraries, shape, engine, microseconds per frame of every engine
 *
 * with tabs between them. Engines round differently, so a run that is resumed,
 * and every process of a job, must take the same. What guarantees that is the
 * file: who does not find a line locks it, looks again, and only then measures
 * and writes. It is $BMUF_ENGINES, or else bmuf/engines in the user's cache
 * directory; nodes that do not share one need BMUF_ENGINES on a disk that they
 * share, or BMUF_LSTM, which names the engine for all.
 *
 * An engine's time is proportional to the number of frames, so FRAMES of them
 * stand for all that are longer.
 */
#include "compute/cuda/cuda_lstm.h"
#include "core/file.h"
#include "core/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 128, STEP = 32, RUNS = 3, MOST = 1 << 20 };

/* What the choice depends on, beside the machine. */
typedef struct shape {
    size_t H, D, R, B, T, precision;
} shape;

struct bm_lstm_choice {
    shape of;
    const bm_lstm_engine *engine;
    bm_lstm_choice *next;
};

static shape shape_of(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    size_t T = (e.T + STEP - 1) / STEP * STEP;

    return (shape){.H = l->n_hidden,
                   .D = l->n_in,
                   .R = l->directions,
                   .B = e.B,
                   .T = T < FRAMES ? T : FRAMES,
                   .precision = bm_cuda_of(be)->precision};
}

static const bm_lstm_engine *named(const char *name)
{
    for (size_t i = 0; bm_lstm_engines[i] != NULL; i++)
        if (strcmp(bm_lstm_engines[i]->name, name) == 0)
            return bm_lstm_engines[i];
    return NULL;
}

static const char *obstacle(const bm_lstm_engine *engine, bm_backend *be,
                            const bm_lstm *l, bm_extent e)
{
    return engine->obstacle != NULL ? engine->obstacle(be, l, e) : NULL;
}

/* That of BMUF_LSTM; NULL, and a failure, if it cannot be. */
static const bm_lstm_engine *forced(bm_backend *be, const char *name,
                                    const bm_lstm *l, bm_extent e)
{
    const bm_lstm_engine *engine = named(name);
    const char *why = NULL;

    if (engine == NULL) {
        bm_remember(be,
                    BM_FAIL(BM_ERR_CONFIG, "BMUF_LSTM: no engine '%s'", name));
        return NULL;
    }
    why = obstacle(engine, be, l, e);
    if (why == NULL)
        return engine;
    bm_remember(be, BM_FAIL(BM_ERR_UNSUPPORTED, "BMUF_LSTM=%s: %s", name, why));
    return NULL;
}

/* Vectors for a layer of such a shape. */
typedef struct scratch {
    float *wx, *wh, *b;
    float *x, *y, *dy, *dx, *dwx, *dwh, *db, *kept;
} scratch;

static void let_go(bm_backend *be, scratch *s)
{
    float *all[] = {s->x, s->y, s->dy, s->dx, s->dwx, s->dwh, s->db, s->kept};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL)
            bm_cuda_free(be, all[i]);
    *s = (scratch){0};
}

static bm_status take(bm_backend *be, const shape *s, size_t n_kept,
                      scratch *out)
{
    size_t frames = s->T * s->B, units = s->R * s->H;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_cuda_alloc(be, units * 4 * s->D, &out->wx));
    BM_TRY_DONE(bm_cuda_alloc(be, units * 4 * s->H, &out->wh));
    BM_TRY_DONE(bm_cuda_alloc(be, units * 4, &out->b));
    BM_TRY_DONE(bm_cuda_alloc(be, frames * s->D, &out->x));
    BM_TRY_DONE(bm_cuda_alloc(be, frames * units, &out->y));
    BM_TRY_DONE(bm_cuda_alloc(be, frames * units, &out->dy));
    BM_TRY_DONE(bm_cuda_alloc(be, frames * s->D, &out->dx));
    BM_TRY_DONE(bm_cuda_alloc(be, units * 4 * s->D, &out->dwx));
    BM_TRY_DONE(bm_cuda_alloc(be, units * 4 * s->H, &out->dwh));
    BM_TRY_DONE(bm_cuda_alloc(be, units * 4, &out->db));
    status = bm_cuda_alloc(be, n_kept, &out->kept);
done:
    if (status != BM_OK)
        let_go(be, out);
    return status;
}

/* One step between two events, in microseconds per frame. */
static double run_once(bm_backend *be, const bm_lstm_engine *engine,
                       const bm_lstm *l, bm_extent e, const scratch *s,
                       cudaEvent_t events[2])
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    float ms = 0;

    BM_CUDA(be, cudaEventRecord(events[0], stream));
    engine->forward(be, l, e, s->x, s->y, s->kept);
    engine->backward(be, l, e, s->x, s->y, s->dy, s->kept, s->dx, s->dwx,
                     s->dwh, s->db);
    bm_cuda_join(be);
    BM_CUDA(be, cudaEventRecord(events[1], stream));
    BM_CUDA(be, cudaEventSynchronize(events[1]));
    BM_CUDA(be, cudaEventElapsedTime(&ms, events[0], events[1]));
    return 1000.0 * ms / (double)e.T;
}

/* The best of some runs, or a failure of the backend. */
static double run_some(bm_backend *be, const bm_lstm_engine *engine,
                       const bm_lstm *l, bm_extent e, const scratch *s)
{
    cudaEvent_t events[2] = {NULL, NULL};
    double best = 0;

    BM_CUDA(be, cudaEventCreate(&events[0]));
    BM_CUDA(be, cudaEventCreate(&events[1]));
    for (size_t i = 0; i <= RUNS && be->failed == BM_OK; i++) {
        double us = run_once(be, engine, l, e, s, events);
        if (i == 1 || (i > 1 && us < best)) /* number 0 warms up */
            best = us;
    }
    for (size_t i = 0; i < 2; i++)
        if (events[i] != NULL)
            cudaEventDestroy(events[i]);
    return best;
}

/* What one engine needs; the failure of one that does not work is not that of
 * the backend. */
static bm_status time_one(bm_backend *be, const bm_lstm_engine *engine,
                          const shape *s, double *us)
{
    bm_lstm l = {s->D, s->H, s->R, NULL, NULL, NULL};
    int32_t *frames = malloc(s->B * sizeof *frames);
    bm_extent e = {s->T, s->B, frames};
    scratch room = {0};
    bm_status status = BM_OK;

    if (frames == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for lengths");
    for (size_t b = 0; b < s->B; b++)
        frames[b] = (int32_t)s->T;
    BM_TRY_DONE(take(be, s, engine->kept(be, &l, e), &room));
    l.wx = room.wx, l.wh = room.wh, l.b = room.b;
    *us = run_some(be, engine, &l, e, &room);
    status = bm_sync(be);
done:
    let_go(be, &room);
    free(frames);
    return status;
}

/* Times all; their names and times go to `times`. NULL if none works. */
static const bm_lstm_engine *measure(bm_backend *be, const bm_lstm *l,
                                     bm_extent e, const shape *s, char *times,
                                     size_t room)
{
    const bm_lstm_engine *best = NULL;
    double least = 0;
    size_t at = 0;

    times[0] = '\0';
    for (size_t i = 0; bm_lstm_engines[i] != NULL; i++) {
        const bm_lstm_engine *engine = bm_lstm_engines[i];
        double us = 0;

        if (obstacle(engine, be, l, e) != NULL)
            continue;
        if (time_one(be, engine, s, &us) != BM_OK) {
            bm_log(BM_NOTE, "lstm without engine %s: %s", engine->name,
                   bm_last_error());
            (void)cudaGetLastError(); /* or a launch would find it */
            continue;
        }
        at +=
            (size_t)snprintf(times + at, at < room ? room - at : 0, "%s%s %.2f",
                             at > 0 ? " " : "", engine->name, us);
        if (best == NULL || us < least)
            best = engine, least = us;
    }
    if (best == NULL)
        bm_remember(be, BM_FAIL(BM_ERR_DEVICE, "no LSTM engine works here"));
    return best;
}

/* What a line begins with: device, libraries, shape. */
static void begin_line(bm_backend *be, const shape *s, char *out, size_t room)
{
    int driver = 0;

    (void)cudaDriverGetVersion(&driver);
    snprintf(out, room,
             "%s\tdriver %d cublasLt %zu cudnn %zu\tlstm H %zu D %zu R %zu "
             "B %zu T %zu precision %zu\t",
             bm_cuda_of(be)->name, driver, cublasLtGetVersion(),
             bm_lstm_cudnn_version(be), s->H, s->D, s->R, s->B, s->T,
             s->precision);
}

/* Where the file is; false if there is no place for one. */
static bool locate(char *path, size_t room)
{
    const char *told = getenv("BMUF_ENGINES");
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;

    if (told != NULL && told[0] != '\0')
        n = snprintf(path, room, "%s", told);
    else if (cache != NULL && cache[0] != '\0')
        n = snprintf(path, room, "%s/bmuf/engines", cache);
    else if (home != NULL && home[0] != '\0')
        n = snprintf(path, room, "%s/.cache/bmuf/engines", home);
    return n > 0 && (size_t)n < room;
}

static bool whole(const char *line)
{
    size_t tabs = 0;

    for (const char *at = line; *at != '\0'; at++)
        tabs += *at == '\t';
    return tabs == 4;
}

/* The engine that a line of the text names for `beginning`; NULL: none does.
 * Takes the text to pieces; other lines that are whole go to `rest`. */
static const bm_lstm_engine *search(const char *path, char *text,
                                    const char *beginning, char *rest)
{
    const bm_lstm_engine *found = NULL;
    size_t n = strlen(beginning);
    char *state = NULL;

    *rest = '\0';
    for (char *line = strtok_r(text, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        char name[32] = "";

        if (!whole(line)) {
            bm_log(BM_WARNING, "%s: a damaged line is ignored", path);
            continue;
        }
        if (strncmp(line, beginning, n) != 0) {
            rest += sprintf(rest, "%s\n", line);
            continue;
        }
        if (sscanf(line + n, "%31[^\t]", name) == 1)
            found = named(name);
        if (found == NULL)
            bm_log(BM_WARNING, "%s: no engine '%s'", path, name);
    }
    return found;
}

/* The engine of the file, NULL if there is none; the other lines of it in
 * *rest, to be freed. */
static const bm_lstm_engine *look_up(const char *path, const char *beginning,
                                     char **rest)
{
    const bm_lstm_engine *found = NULL;
    char *text = NULL;
    size_t size = 0;
    bm_status status = bm_file_read(path, MOST, &text, &size);

    *rest = calloc(size + 2, 1);
    if (status != BM_OK && status != BM_ERR_MISSING)
        bm_log(BM_WARNING, "%s is ignored: %s", path, bm_last_error());
    if (status == BM_OK && *rest != NULL)
        found = search(path, text, beginning, *rest);
    free(text);
    return found;
}

static bm_status write_line(const char *path, const char *rest,
                            const char *beginning, const char *engine,
                            const char *times)
{
    size_t room = strlen(rest) + strlen(beginning) + strlen(times) + 64;
    char *text = malloc(room);
    bm_status status = BM_OK;

    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    snprintf(text, room, "%s%s%s\t%s\n", rest, beginning, engine, times);
    status = bm_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* Alone among all processes until the descriptor is closed; -1 if that cannot
 * be had. */
static int lock(const char *path)
{
    struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char beside[1100];
    int fd = -1;

    snprintf(beside, sizeof beside, "%s.lock", path);
    fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && fcntl(fd, F_SETLKW, &whole_file) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bm_status make_folder_of(const char *path)
{
    char folder[1024];
    char *slash = NULL;

    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder)
        return BM_OK;
    *slash = '\0';
    return bm_file_make_directory(folder);
}

static const bm_lstm_engine *
measure_and_tell(bm_backend *be, const bm_lstm *l, bm_extent e, const shape *s,
                 const char *path, const char *beginning, const char *rest)
{
    char times[256];
    const bm_lstm_engine *engine = measure(be, l, e, s, times, sizeof times);

    if (engine == NULL)
        return NULL;
    if (path == NULL || rest == NULL ||
        write_line(path, rest, beginning, engine->name, times) != BM_OK)
        bm_log(BM_WARNING,
               "the choice of an LSTM engine is not kept, and other processes "
               "may choose another (%s); BMUF_ENGINES says where it could be",
               path == NULL ? "there is no place for it" : bm_last_error());
    return engine;
}

static const bm_lstm_engine *decide(bm_backend *be, const bm_lstm *l,
                                    bm_extent e, const shape *s)
{
    const bm_lstm_engine *engine = NULL;
    char path[1024], beginning[512];
    char *rest = NULL;
    int locked = -1;

    begin_line(be, s, beginning, sizeof beginning);
    if (!locate(path, sizeof path) || make_folder_of(path) != BM_OK)
        return measure_and_tell(be, l, e, s, NULL, beginning, NULL);
    locked = lock(path);
    engine = look_up(path, beginning, &rest);
    if (engine == NULL || obstacle(engine, be, l, e) != NULL)
        engine = measure_and_tell(be, l, e, s, path, beginning, rest);
    free(rest);
    if (locked >= 0)
        close(locked);
    return engine;
}

const bm_lstm_engine *bm_lstm_choose(bm_backend *be, const bm_lstm *l,
                                     bm_extent e)
{
    struct bm_cuda_lstm *own = bm_cuda_of(be)->lstm;
    const char *name = getenv("BMUF_LSTM");
    shape s = shape_of(be, l, e);
    const bm_lstm_engine *engine = NULL;
    bm_lstm_choice *made = own->choices;

    if (be->failed != BM_OK)
        return NULL;
    if (name != NULL && name[0] != '\0')
        return forced(be, name, l, e);
    for (; made != NULL; made = made->next)
        if (memcmp(&made->of, &s, sizeof s) == 0)
            return made->engine;
    bm_step_leave(be);
    engine = decide(be, l, e, &s);
    if (engine == NULL)
        return NULL;
    made = malloc(sizeof *made);
    if (made == NULL) {
        bm_remember(be, BM_FAIL(BM_ERR_MEMORY, "no memory for an LSTM"));
        return NULL;
    }
    *made = (bm_lstm_choice){s, engine, own->choices};
    own->choices = made;
    return engine;
}

void bm_lstm_choices_free(bm_backend *be)
{
    struct bm_cuda_lstm *own = bm_cuda_of(be)->lstm;

    for (bm_lstm_choice *next, *c = own->choices; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    own->choices = NULL;
}
