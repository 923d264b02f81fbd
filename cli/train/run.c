#include "cli/train/run.h"

#include "cli/report/journal_events.h"
#include "core/file/file.h"
#include "core/file/file_lock.h"
#include "core/file/path.h"
#include "core/file/search_folder.h"
#include "core/text/words.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Refuses the folder of a search, and a directory with files but without
 * config.ini: it is no run. */
static bm_status check_ownership(const bm_run *run)
{
    DIR *directory = NULL;
    const struct dirent *entry = NULL;
    bool foreign = false;

    BM_TRY(bm_search_folder_refuse(run->directory));
    directory = opendir(run->directory);
    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", run->directory,
                       strerror(errno));
    while ((entry = readdir(directory)) != NULL)
        foreign = foreign || (entry->d_name[0] != '.' &&
                              strcmp(entry->d_name, "run.lock") != 0 &&
                              strcmp(entry->d_name, "attempt") != 0 &&
                              strcmp(entry->d_name, "journal.jsonl") != 0 &&
                              strcmp(entry->d_name, "checkpoints") != 0);
    closedir(directory);
    if (foreign && !exists(run->config_path))
        return BM_FAIL(BM_ERR_CREATE,
                       "%s has files in it, but no config.ini, so it is not a "
                       "run; give another --out",
                       run->directory);
    return BM_OK;
}

/* The number of events of a kind in the journal. */
static int count_events(const char *path, const char *kind)
{
    FILE *file = NULL;
    char line[256], begin[64];
    int n = 0;
    bool whole = true; /* the next text begins a line */

    if (bm_file_open_stream(&file, path) != BM_OK)
        return 0; /* most often it does not exist yet */
    snprintf(begin, sizeof begin, "{\"event\":\"%s\"", kind);
    while (fgets(line, sizeof line, file) != NULL) {
        n += whole && strncmp(line, begin, strlen(begin)) == 0;
        whole = strchr(line, '\n') != NULL;
    }
    fclose(file);
    return n;
}

static bool has_model(const bm_run *run)
{
    return exists(run->model_path) || exists(run->best_path) ||
           exists(run->ema_path);
}

/* Whether a run with n checkpoints has no block yet, so that other settings lose
 * nothing. */
static bool is_fresh(const bm_run *run, size_t n)
{
    return !exists(run->config_path) ||
           (n == 0 && !has_model(run) &&
            count_events(run->journal_path, "block") == 0 &&
            count_events(run->journal_path, "checkpoint") == 0);
}

static void take_block(void *self, const char *kind, json_t *event)
{
    double *block = self;

    if (strcmp(kind, "checkpoint") == 0)
        *block = fmax(*block, bm_event_number(event, "block"));
}

/* For a run without checkpoints. If it had some, training from the start would
 * overwrite its models. If its journal has none either, the job was killed before
 * the first one, and may start again; without a journal a model shows that there
 * was more. */
static bm_status check_presence(const bm_run *run)
{
    double block = -1;

    if (bm_journal_events(run->directory, take_block, &block) == BM_OK &&
        block >= 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "the journal has checkpoints up to block %.0f, but %s "
                       "has none: restore or mount them, or give another --out "
                       "to train from the start",
                       block, run->checkpoints);
    if (has_model(run) && count_events(run->journal_path, "block") == 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "%s has a model, but %s has no checkpoints: restore or "
                       "mount them, or give another --out to train from the "
                       "start",
                       run->directory, run->checkpoints);
    return BM_OK;
}

/* Fails unless a run that has been opened or is to be opened can be resumed
 * with these settings; *fresh: is_fresh. */
static bm_status check_resumable(const bm_run *run, const bm_config *config,
                                 bool *fresh)
{
    bm_run_checkpoint any[BM_CHECKPOINT_PATHS];
    size_t n = 0;

    BM_TRY(bm_run_list(run, any, BM_CHECKPOINT_PATHS, &n));
    *fresh = is_fresh(run, n);
    if (*fresh)
        return BM_OK;
    BM_TRY(bm_run_compare(run, config));
    return n > 0 ? BM_OK : check_presence(run);
}

/* Checkpoints that a killed job was writing. Each has the disk space of a whole one. */
static bm_status remove_unfinished(const char *directory)
{
    return bm_file_remove_temporaries(directory, "block-", ".safetensors");
}

/* The folder above must be there: without it the disk is not mounted. */
static bm_status open_copy(const char *directory, int *lock)
{
    size_t n = 0;

    if (mkdir(directory, 0777) != 0 && errno == ENOENT)
        return BM_FAIL(BM_ERR_CREATE,
                       "train.checkpoint_copies: %s: the folder that it would "
                       "be in does not exist; mount its disk, or make the "
                       "folder",
                       directory);
    BM_TRY(bm_file_make_directory(directory));
    BM_TRY(bm_checkpoint_list(directory, NULL, 0, &n));
    BM_TRY(bm_file_lock(lock, directory, "run.lock"));
    return remove_unfinished(directory);
}

/* A copy on the run's own disk is lost with it. */
static void warn_of_one_disk(const bm_run *run, const char *copy)
{
    struct stat a, b;

    if (stat(run->directory, &a) == 0 && stat(copy, &b) == 0 &&
        a.st_dev == b.st_dev)
        bm_log(BM_WARNING,
               "train.checkpoint_copies: %s is on the disk of %s; a copy is of "
               "use on another one",
               copy, run->directory);
}

/* RUN/checkpoints, by whatever path, is no copy of itself. */
static bm_status check_copies(const bm_run *run)
{
    for (int i = 0; i < run->n_copies; i++)
        if (bm_is_same_file(run->checkpoints, run->copies[i]))
            return BM_FAIL(BM_ERR_CONFIG,
                           "train.checkpoint_copies: %s is %s, the run's own "
                           "folder; give folders on other disks",
                           run->copies[i], run->checkpoints);
    return BM_OK;
}

/* A folder that a resumed run cannot use is dropped. */
static bm_status open_copies(bm_run *run)
{
    BM_TRY(check_copies(run));
    for (int i = 0; i < run->n_copies; i++) {
        bm_status status = open_copy(run->copies[i], &run->copy_locks[i]);

        if (status != BM_OK && run->fresh)
            return status;
        if (status == BM_OK) {
            warn_of_one_disk(run, run->copies[i]);
            continue;
        }
        bm_log(BM_WARNING,
               "train.checkpoint_copies: the run goes on without copies in %s: "
               "%s",
               run->copies[i], bm_last_message());
        run->n_copies--;
        memmove(run->copies[i], run->copies[i + 1],
                (size_t)(run->n_copies - i) * sizeof run->copies[0]);
        i--;
    }
    return BM_OK;
}

/* Fails unless the directory, or the nearest one above it that exists, can be
 * written to. */
static bm_status check_writable(const char *directory)
{
    char path[PATH_MAX];
    struct stat info;

    snprintf(path, sizeof path, "%s", directory);
    while (access(path, W_OK | X_OK) != 0) {
        char *last = strrchr(path, '/');
        int error = errno;

        if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode))
            return BM_FAIL(BM_ERR_CREATE,
                           "%s: the run cannot be written: %s is not a folder; "
                           "give another --out",
                           directory, path);
        if ((error != ENOENT && error != ENOTDIR) || strcmp(path, ".") == 0)
            return BM_FAIL(BM_ERR_CREATE,
                           "%s: the run cannot be written: %s: %s; give "
                           "another --out, or restore the permission to write "
                           "there",
                           directory, path, strerror(error));
        if (last == NULL)
            snprintf(path, sizeof path, ".");
        else
            last[last == path] = '\0';
    }
    return BM_OK;
}

static bm_status claim(bm_run *run)
{
    BM_TRY(check_writable(run->directory));
    BM_TRY(bm_file_make_directory(run->directory));
    BM_TRY(check_ownership(run));
    return bm_file_lock(&run->lock, run->directory, "run.lock");
}

static bm_status begin_attempt(const bm_run *run, char own[BM_FENCE_ROOM])
{
    return bm_fence_begin(run->directory,
                          1 + count_events(run->journal_path, "start"), own);
}

/* A supervisor has locked the directory and begun the attempt. */
static bm_status join_attempt(bm_run *run)
{
    const char *given = getenv(BM_FENCE_ATTEMPT);

    if (given != NULL && given[0] != '\0') {
        snprintf(run->own, sizeof run->own, "%s", given);
        return BM_OK;
    }
    BM_TRY(claim(run));
    return begin_attempt(run, run->own);
}

static bm_status open_as_root(bm_run *run, const bm_config *config)
{
    BM_TRY(join_attempt(run));
    bm_fence_join(run->directory, run->own);
    BM_TRY(bm_fence_check());
    BM_TRY(check_resumable(run, config, &run->fresh));
    /* What a killed job left; temporary files of other programs stay. */
    BM_TRY(bm_file_remove_temporaries(run->directory, "model", ".safetensors"));
    BM_TRY(bm_file_remove_temporaries(run->directory, "config", ".ini"));
    BM_TRY(bm_file_make_directory(run->checkpoints));
    BM_TRY(remove_unfinished(run->checkpoints));
    BM_TRY(open_copies(run));
    BM_TRY(bm_journal_open(&run->journal, run->journal_path));
    bm_log_journal(run->journal);
    return BM_OK;
}

/* The folders of train.checkpoint_copies. */
static bm_status name_copies(bm_run *run, const bm_config *config)
{
    bm_train_settings train = {0};
    const char *at = NULL;

    bm_config_peek(config, "train", bm_train_options, &train);
    for (at = train.checkpoint_copies; *at != '\0';) {
        size_t blanks = strspn(at, " \t"), n = strcspn(at + blanks, " \t");

        at += blanks;
        if (n > 0 && (run->n_copies == BM_CHECKPOINT_PATHS - 1 ||
                      n >= sizeof run->copies[0] - 64))
            return BM_FAIL(BM_ERR_CONFIG,
                           "train.checkpoint_copies: more than %d folders, or "
                           "a path that is too long",
                           BM_CHECKPOINT_PATHS - 1);
        if (n > 0)
            snprintf(run->copies[run->n_copies++], sizeof run->copies[0],
                     "%.*s", (int)n, at);
        at += n;
    }
    return BM_OK;
}

static bm_status name_files(bm_run *run, const char *directory,
                            const bm_config *config)
{
    *run = (bm_run)BM_RUN_CLOSED;
    if (strlen(directory) >= sizeof run->directory)
        return BM_FAIL(BM_ERR_CREATE, "%.60s...: the path is too long",
                       directory);
    snprintf(run->directory, sizeof run->directory, "%s", directory);
    snprintf(run->config_path, sizeof run->config_path, "%s/config.ini",
             directory);
    snprintf(run->journal_path, sizeof run->journal_path, "%s/journal.jsonl",
             directory);
    snprintf(run->checkpoints, sizeof run->checkpoints, "%s/checkpoints",
             directory);
    snprintf(run->model_path, sizeof run->model_path, "%s/model.safetensors",
             directory);
    snprintf(run->best_path, sizeof run->best_path, "%s/model-best.safetensors",
             directory);
    snprintf(run->ema_path, sizeof run->ema_path, "%s/model-ema.safetensors",
             directory);
    return name_copies(run, config);
}

bm_status bm_run_check(const char *directory, const bm_config *config)
{
    bm_run run;

    BM_TRY(name_files(&run, directory, config));
    BM_TRY(check_writable(directory));
    if (!exists(directory))
        return BM_OK;
    BM_TRY(check_ownership(&run));
    return check_resumable(&run, config, &run.fresh);
}

/* ---- checkpoints --------------------------------------------------------- */

static const char *place_of(const bm_run *run, int place)
{
    return place == 0 ? run->checkpoints : run->copies[place - 1];
}

static int newest_first(const void *left, const void *right)
{
    const bm_run_checkpoint *a = left, *b = right;

    if (a->blocks != b->blocks)
        return a->blocks > b->blocks ? -1 : 1;
    return a->place - b->place;
}

/* open_copy has listed the copies that are in use. */
bm_status bm_run_list(const bm_run *run, bm_run_checkpoint *out, size_t room,
                      size_t *n)
{
    size_t places = (size_t)run->n_copies + 1, most = room / places;
    int64_t *blocks = calloc(most + 1, sizeof *blocks);
    bm_status status = BM_OK;

    *n = 0;
    if (blocks == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to list checkpoints");
    for (int p = 0; status == BM_OK && p < (int)places; p++) {
        size_t k = 0;

        status = bm_checkpoint_list(place_of(run, p), blocks, most, &k);
        if (status != BM_OK && p > 0) {
            status = BM_OK;
            k = 0;
        }
        for (size_t i = 0; status == BM_OK && i < k; i++)
            out[(*n)++] = (bm_run_checkpoint){blocks[i], p};
    }
    free(blocks);
    qsort(out, *n, sizeof *out, newest_first);
    return status;
}

void bm_run_checkpoint_path(const bm_run *run, bm_run_checkpoint which,
                            char *out, size_t room)
{
    bm_checkpoint_path(place_of(run, which.place), which.blocks, out, room);
}

static bm_status find_newest(const char *directory, const bm_config *config,
                             char *path, size_t room)
{
    enum { MOST = 4096 };
    static bm_run_checkpoint list[MOST];
    bm_run run;
    size_t n = 0;

    path[0] = '\0';
    BM_TRY(name_files(&run, directory, config));
    BM_TRY(bm_run_list(&run, list, MOST, &n));
    for (size_t i = 0; i < n; i++) {
        bm_st_file *f = NULL;

        bm_run_checkpoint_path(&run, list[i], path, room);
        if (bm_st_open(&f, path, false) == BM_OK) {
            bm_st_free(f);
            return BM_OK;
        }
    }
    path[0] = '\0';
    return BM_OK;
}

bm_status bm_run_newest(const char *directory, const bm_config *config,
                        bm_comm *comm, char *path, size_t room)
{
    bm_status status = BM_OK;

    if (comm == NULL || bm_comm_rank(comm) == 0)
        status = find_newest(directory, config, path, room);
    if (comm == NULL)
        return status;
    BM_TRY(bm_comm_agree(comm, status));
    return bm_comm_broadcast_bytes(comm, path, room, 0);
}

bm_status bm_run_open(bm_run *run, const char *directory, bm_comm *comm,
                      const bm_config *config)
{
    bm_status status = BM_OK;
    int both[2] = {0, 0};

    BM_TRY(name_files(run, directory, config));
    if (bm_comm_rank(comm) == 0)
        status = open_as_root(run, config);
    BM_TRY(bm_comm_agree(comm, status));
    both[0] = run->fresh;
    both[1] = bm_comm_rank(comm) == 0 ? run->n_copies : 0;
    BM_TRY(bm_comm_max(comm, both, 2));
    run->fresh = both[0] != 0;
    run->n_copies = both[1];
    BM_TRY(bm_comm_broadcast_bytes(comm, run->copies, sizeof run->copies, 0));
    BM_TRY(bm_comm_broadcast_bytes(comm, run->own, sizeof run->own, 0));
    run->attempt = bm_fence_number(run->own);
    bm_fence_join(directory, run->own);
    return BM_OK;
}

static bool has(const char *directory, const char *name)
{
    char path[PATH_MAX];

    return bm_path_join(path, directory, name) == BM_OK && exists(path);
}

/* A folder with config.ini and checkpoints is a run, also if its journal is lost;
 * with config.ini alone it is one of a user's own, as such a file is. */
bool bm_run_of(const char *config, char *directory, size_t room)
{
    static const char name[] = "config.ini", journal[] = "journal.jsonl";
    size_t n = strlen(config);
    bool file =
        strcmp(config, name) == 0 || bm_ends_with(config, "/config.ini");

    snprintf(directory, room, "%s", config);
    if (file && n == strlen(name))
        snprintf(directory, room, ".");
    else if (file && n < room)
        directory[n - sizeof name] = '\0';
    if (has(directory, journal))
        return true;
    return !file && has(directory, name) && has(directory, "checkpoints");
}

bm_status bm_run_begin(const bm_run *run, bm_comm *comm,
                       const bm_config *config)
{
    bm_status status = BM_OK;

    if (bm_comm_rank(comm) == 0)
        status = bm_settings_write(config, run->config_path);
    return bm_comm_agree(comm, status);
}

bm_status bm_run_claim(const char *directory, int *lock)
{
    bm_run run;
    bm_status status = BM_OK;

    BM_TRY(name_files(&run, directory, NULL));
    status = claim(&run);
    *lock = run.lock;
    return status;
}

bm_status bm_run_attempt(const char *directory, char own[BM_FENCE_ROOM])
{
    bm_run run;

    BM_TRY(name_files(&run, directory, NULL));
    return begin_attempt(&run, own);
}

void bm_run_close(bm_run *run)
{
    bm_fence_leave();
    bm_log_journal(NULL);
    bm_journal_close(run->journal);
    for (int i = 0; i < BM_CHECKPOINT_PATHS - 1; i++)
        if (run->copy_locks[i] >= 0)
            close(run->copy_locks[i]);
    if (run->lock >= 0)
        close(run->lock);
}
