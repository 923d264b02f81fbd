#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/launch/restarts.h"

#include "cli/train/run.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Exit codes after which the same would happen again. 69 is a rank or a device
 * that was lost. */
static bool is_final(int code)
{
    return code == 0 || (code >= 64 && code <= 78 && code != 69);
}

/* Whether the ranks have come so far as to write the run's settings: before, they
 * refuse what they cannot do. */
static bool has_begun(const bm_restarts *r)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/config.ini", r->run);
    return access(path, F_OK) == 0;
}

/* When config.ini was written; 0: there is none. It is opened, as NFS may answer
 * from its memory otherwise. */
static struct timespec config_written(const bm_restarts *r)
{
    char path[PATH_MAX + 16];
    struct stat info = {0};
    int file = -1;

    snprintf(path, sizeof path, "%s/config.ini", r->run);
    file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return info.st_mtim;
    (void)fstat(file, &info);
    close(file);
    return info.st_mtim;
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec ||
           (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Block 0: there is none, or they cannot be listed. */
static bm_newest newest_of(const bm_restarts *r)
{
    enum { MOST = 64 };
    int64_t blocks[MOST];
    size_t n = 0;
    bm_newest last = {0};
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/checkpoints", r->run);
    if (bm_checkpoint_list(path, blocks, MOST, &n) != BM_OK)
        return last;
    for (size_t i = 0; i < n && i < MOST; i++) {
        char file[PATH_MAX + 64];
        struct stat info;

        bm_checkpoint_path(path, blocks[i], file, sizeof file);
        if (stat(file, &info) == 0 && is_later(info.st_mtim, last.written))
            last = (bm_newest){blocks[i], info.st_mtim};
    }
    return last;
}

bm_status bm_restarts_open(bm_restarts *r, const char *run, long most)
{
    *r = (bm_restarts){.lock = -1, .most = most};
    if (run == NULL)
        return BM_OK;
    BM_TRY(bm_run_claim(run, &r->lock));
    if (realpath(run, r->run) == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", run, strerror(errno));
    if (snprintf(r->shared, sizeof r->shared, "%.*s/.ranks", PATH_MAX - 10,
                 r->run) >= PATH_MAX - 3)
        return BM_FAIL(BM_ERR_CREATE, "%.60s...: the path is too long", run);
    r->config = config_written(r);
    return BM_OK;
}

bool bm_restarts_has_settings(const bm_restarts *r)
{
    struct timespec now = config_written(r), then = r->config;

    return r->run[0] != '\0' && now.tv_sec != 0 &&
           (now.tv_sec != then.tv_sec || now.tv_nsec != then.tv_nsec);
}

/* Heartbeats of an earlier attempt. */
static void remove_shared(const bm_restarts *r)
{
    DIR *list = opendir(r->shared);
    const struct dirent *entry = NULL;

    while (list != NULL && (entry = readdir(list)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(list), entry->d_name, 0);
    if (list != NULL)
        closedir(list);
    (void)rmdir(r->shared);
}

/* Leaves no folder of a run that was refused. */
static void remove_unbegun(const bm_restarts *r)
{
    static const char *const files[] = {"attempt", "run.lock"};
    char path[PATH_MAX + 16];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", r->run, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(r->run); /* stays if there is anything else */
}

void bm_restarts_close(bm_restarts *r)
{
    if (r->shared[0] != '\0')
        remove_shared(r);
    if (r->lock >= 0 && r->run[0] != '\0' && !has_begun(r))
        remove_unbegun(r);
    if (r->lock >= 0)
        close(r->lock);
    r->lock = -1;
}

bm_status bm_restarts_begin(bm_restarts *r)
{
    if (r->run[0] == '\0')
        return BM_OK;
    remove_shared(r);
    r->began = newest_of(r);
    return bm_run_attempt(r->run, r->own);
}

static void write_event(const bm_restarts *r, const bm_outcome *o,
                        const char *why, int64_t block)
{
    char path[PATH_MAX + 20];
    bm_journal *j = NULL;
    bool known = o->rank >= 0;

    snprintf(path, sizeof path, "%s/journal.jsonl", r->run);
    if (bm_journal_open(&j, path) != BM_OK) {
        bm_log(BM_WARNING, "cannot record the restart in journal.jsonl: %s",
               bm_last_message());
        return;
    }
    bm_journal_write(
        j, "restart",
        (bm_field[]){{"attempt", bm_fence_number(r->own), NULL},
                     {"restart", (double)r->made, NULL},
                     {"block", (double)block, NULL},
                     {"code", o->code, NULL},
                     {"reason", 0, why},
                     {"rank", known ? o->rank : NAN, NULL},
                     {"host", NAN, o->host[0] != '\0' ? o->host : NULL},
                     {"phase", NAN, o->phase[0] != '\0' ? o->phase : NULL},
                     {"hung_s", o->seconds > 0 ? o->seconds : NAN, NULL},
                     {0}});
    bm_journal_close(j);
}

bool bm_restarts_another(bm_restarts *r, const bm_outcome *o)
{
    bm_newest last;
    char why[700];

    if (o->returned) {
        r->returns++;
        write_event(r, o, "hosts are back", newest_of(r).block);
        return true;
    }
    if (r->run[0] == '\0' || r->most == 0 || o->asked || is_final(o->code) ||
        (o->absent && r->made == 0) || (o->code == 69 && !has_begun(r)))
        return false;
    last = newest_of(r);
    if (o->why[0] != '\0')
        snprintf(why, sizeof why, "%s", o->why);
    else
        snprintf(why, sizeof why, "the job ended with exit code %d", o->code);
    if (r->made > 0 && !is_later(last.written, r->began.written)) {
        bm_log(BM_WARNING,
               "no restart: there is no checkpoint newer than block %lld, "
               "where the last restart began",
               (long long)r->began.block);
        return false;
    }
    if (r->made == r->most) {
        bm_log(BM_WARNING, "no restart: --max-restarts allows %ld", r->made);
        return false;
    }
    r->made++;
    bm_log(BM_WARNING,
           "%s; restarting from block %lld, restart %ld of at most %ld", why,
           (long long)last.block, r->made, r->most);
    write_event(r, o, why, last.block);
    return true;
}
