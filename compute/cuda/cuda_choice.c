/*
 * cuda_choice.c - the file of choices, a line each:
 *
 *     device, libraries, shape, way, microseconds per frame of every way
 *
 * with tabs between them. Ways round differently, so a run that is resumed, and
 * every process of a job, must take the same. What guarantees that is the file:
 * who does not find a line locks it, looks again, and only then measures and
 * writes. It is $BMUF_ENGINES, or else bmuf/engines in the user's cache
 * directory; nodes that do not share one need BMUF_ENGINES on a disk that they
 * share, or a variable that names the way for all.
 */
#include "compute/cuda/cuda_choice.h"
#include "core/file.h"
#include "core/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 3, WARM_RUNS = 50, WARM_MS = 50, MOST = 1 << 20 };
#define NONE SIZE_MAX

struct bm_cuda_choice {
    char *what, *shape;
    size_t way;
    bm_cuda_choice *next;
};

static size_t named(const bm_ways *w, const char *name)
{
    for (size_t i = 0; w->name(i) != NULL; i++)
        if (strcmp(w->name(i), name) == 0)
            return i;
    return NONE;
}

/* That of the variable; NONE, and a failure, if it cannot be. */
static size_t forced(bm_backend *be, const bm_ways *w, const char *name)
{
    size_t way = named(w, name);
    const char *why = NULL;

    if (way == NONE) {
        bm_remember(be, BM_FAIL(BM_ERR_CONFIG, "%s: no engine '%s'",
                                w->variable, name));
        return NONE;
    }
    why = w->obstacle(w->self, way);
    if (why == NULL)
        return way;
    bm_remember(
        be, BM_FAIL(BM_ERR_UNSUPPORTED, "%s=%s: %s", w->variable, name, why));
    return NONE;
}

/* One step between two events, in milliseconds. */
static double run_once(bm_backend *be, const bm_ways *w, size_t way,
                       cudaEvent_t events[2])
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    float ms = 0;

    BM_CUDA(be, cudaEventRecord(events[0], stream));
    w->step(w->self, way);
    bm_cuda_join(be);
    BM_CUDA(be, cudaEventRecord(events[1], stream));
    BM_CUDA(be, cudaEventSynchronize(events[1]));
    BM_CUDA(be, cudaEventElapsedTime(&ms, events[0], events[1]));
    return ms;
}

/* The best of some runs, in microseconds per frame, or a failure of the
 * backend. Memory and plans are found in one before them, and others keep the
 * device busy for a while: one that has had nothing to do is slow at first. */
static double run_some(bm_backend *be, const bm_ways *w, size_t way)
{
    cudaEvent_t events[2] = {NULL, NULL};
    double best = 0, warm = 0;

    BM_CUDA(be, cudaEventCreate(&events[0]));
    BM_CUDA(be, cudaEventCreate(&events[1]));
    (void)run_once(be, w, way, events);
    for (int i = 0; i < WARM_RUNS && warm < WARM_MS && be->failed == BM_OK; i++)
        warm += run_once(be, w, way, events);
    for (int i = 0; i < RUNS && be->failed == BM_OK; i++) {
        double ms = run_once(be, w, way, events);
        if (i == 0 || ms < best)
            best = ms;
    }
    for (size_t i = 0; i < 2; i++)
        if (events[i] != NULL)
            cudaEventDestroy(events[i]);
    return 1000 * best / (double)w->frames;
}

/* The failure of a way that does not work is not that of the backend. */
static bm_status time_one(bm_backend *be, const bm_ways *w, size_t way,
                          double *us)
{
    bm_status status = w->prepare(w->self, way);

    if (status == BM_OK) {
        *us = run_some(be, w, way);
        status = bm_sync(be);
    }
    w->clear(w->self, way);
    return status;
}

/* Times all; their names and times go to `times`. NONE if none works. */
static size_t measure(bm_backend *be, const bm_ways *w, char *times,
                      size_t room)
{
    size_t best = NONE, at = 0;
    double least = 0;

    times[0] = '\0';
    for (size_t i = 0; w->name(i) != NULL; i++) {
        double us = 0;

        if (w->obstacle(w->self, i) != NULL)
            continue;
        if (time_one(be, w, i, &us) != BM_OK) {
            bm_log(BM_NOTE, "%s without engine %s: %s", w->what, w->name(i),
                   bm_last_error());
            (void)cudaGetLastError(); /* or a launch would find it */
            continue;
        }
        at += (size_t)snprintf(times + at, at < room ? room - at : 0,
                               "%s%s %.2f", at > 0 ? " " : "", w->name(i), us);
        if (best == NONE || us < least)
            best = i, least = us;
    }
    if (best == NONE)
        bm_remember(be,
                    BM_FAIL(BM_ERR_DEVICE, "no %s engine works here", w->what));
    return best;
}

/* What a line begins with: device, libraries, shape. */
static void begin_line(bm_backend *be, const bm_ways *w, char *out, size_t room)
{
    int driver = 0;

    (void)cudaDriverGetVersion(&driver);
    snprintf(out, room, "%s\tdriver %d cublasLt %zu cudnn %zu\t%s %s\t",
             bm_cuda_of(be)->name, driver, cublasLtGetVersion(),
             bm_cudnn_version(be), w->what, w->shape);
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

/* The way that a line of the text names for `beginning`; NONE: none does. Takes
 * the text to pieces; other lines that are whole go to `rest`. */
static size_t search(const bm_ways *w, const char *path, char *text,
                     const char *beginning, char *rest)
{
    size_t found = NONE;
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
            found = named(w, name);
        if (found == NONE)
            bm_log(BM_WARNING, "%s: no engine '%s'", path, name);
    }
    return found;
}

/* The way of the file, NONE if there is none; the other lines of it in *rest,
 * to be freed. */
static size_t look_up(const bm_ways *w, const char *path, const char *beginning,
                      char **rest)
{
    size_t found = NONE;
    char *text = NULL;
    size_t size = 0;
    bm_status status = bm_file_read(path, MOST, &text, &size);

    *rest = calloc(size + 2, 1);
    if (status != BM_OK && status != BM_ERR_MISSING)
        bm_log(BM_WARNING, "%s is ignored: %s", path, bm_last_error());
    if (status == BM_OK && *rest != NULL)
        found = search(w, path, text, beginning, *rest);
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

static size_t measure_and_tell(bm_backend *be, const bm_ways *w,
                               const char *path, const char *beginning,
                               const char *rest)
{
    char times[256];
    size_t way = measure(be, w, times, sizeof times);

    if (way == NONE)
        return NONE;
    if (path == NULL || rest == NULL ||
        write_line(path, rest, beginning, w->name(way), times) != BM_OK)
        bm_log(BM_WARNING,
               "the choice of an engine for the %s is not kept, and other "
               "processes may choose another (%s); BMUF_ENGINES says where it "
               "could be",
               w->what,
               path == NULL ? "there is no place for it" : bm_last_error());
    return way;
}

static size_t decide(bm_backend *be, const bm_ways *w)
{
    size_t way = NONE;
    char path[1024], beginning[512];
    char *rest = NULL;
    int locked = -1;

    begin_line(be, w, beginning, sizeof beginning);
    if (!locate(path, sizeof path) || make_folder_of(path) != BM_OK)
        return measure_and_tell(be, w, NULL, beginning, NULL);
    locked = lock(path);
    way = look_up(w, path, beginning, &rest);
    if (way == NONE || w->obstacle(w->self, way) != NULL)
        way = measure_and_tell(be, w, path, beginning, rest);
    free(rest);
    if (locked >= 0)
        close(locked);
    return way;
}

static void forget(bm_cuda_choice *c)
{
    free(c->what);
    free(c->shape);
    free(c);
}

/* For later calls. */
static bm_status keep(bm_cuda *cuda, const bm_ways *w, size_t way)
{
    bm_cuda_choice *c = calloc(1, sizeof *c);

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the choice of an engine");
    *c =
        (bm_cuda_choice){strdup(w->what), strdup(w->shape), way, cuda->choices};
    if (c->what == NULL || c->shape == NULL) {
        forget(c);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the choice of an engine");
    }
    cuda->choices = c;
    return BM_OK;
}

size_t bm_cuda_choose(bm_backend *be, const bm_ways *w)
{
    bm_cuda *cuda = bm_cuda_of(be);
    const char *name = getenv(w->variable);
    size_t way = NONE;

    if (be->failed != BM_OK)
        return NONE;
    if (name != NULL && name[0] != '\0')
        return forced(be, w, name);
    for (bm_cuda_choice *c = cuda->choices; c != NULL; c = c->next)
        if (strcmp(c->what, w->what) == 0 && strcmp(c->shape, w->shape) == 0)
            return c->way;
    bm_step_leave(be);
    way = decide(be, w);
    if (way != NONE)
        bm_remember(be, keep(cuda, w, way));
    return be->failed == BM_OK ? way : NONE;
}

void bm_cuda_choices_free(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    for (bm_cuda_choice *next, *c = cuda->choices; c != NULL; c = next) {
        next = c->next;
        forget(c);
    }
    cuda->choices = NULL;
}
