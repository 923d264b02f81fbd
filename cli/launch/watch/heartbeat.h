/*
 * heartbeat.h - what the supervisor sees of the ranks. Each rank locks a file of
 * its own, whose lock the kernel drops when the rank dies, and a thread of it
 * writes there, several times a second, what the rank is doing.
 *
 * The files are in the folder of scratch.h. Ranks on other hosts do not see it:
 * they write to the folder of the run, less often, and their deaths are left to
 * mpirun. Phases are the spans of core/trace/span.h; the cost is one addition and
 * one store for each.
 */
#ifndef BM_CLI_LAUNCH_WATCH_HEARTBEAT_H
#define BM_CLI_LAUNCH_WATCH_HEARTBEAT_H

#include <stdbool.h>

/* Environment variables of the ranks: the folder of the files, and the one for
 * ranks on other hosts, "" without one. */
#define BM_HEARTBEAT_FOLDER "BMUF_HEARTBEATS"
#define BM_HEARTBEAT_SHARED "BMUF_HEARTBEATS_SHARED"

typedef struct bm_heartbeat {
    enum {
        BM_HEARTBEAT_NONE, /* not begun, or ended */
        BM_HEARTBEAT_ALIVE,
        BM_HEARTBEAT_DEAD /* it had begun; on this host only */
    } state;
    bool here;     /* on the supervisor's host */
    long beats;    /* 0: the rank has not come as far */
    long progress; /* spans that began or ended, on all threads */
    double cpu_s;  /* of the process */
    char phase[16];
    long pid;
    char host[64];
} bm_heartbeat;

/* ---- in a rank ----------------------------------------------------------- */

/* At the start, on the thread whose spans are the phases: creates and locks the
 * file. No-op without the environment variables. */
void bm_heartbeat_begin(void);
/* Whether there is a supervisor that reads them. */
bool bm_heartbeat_is_read(void);

/* The phase while no span is open; static lifetime. Writes the file. */
void bm_heartbeat_phase(const char *name);

/* Writes the file; called by one thread every BM_HEARTBEAT_S. */
#define BM_HEARTBEAT_S 0.25
void bm_heartbeat_beat(void);

/* Before a clean exit: removes the file. */
void bm_heartbeat_end(void);

/* ---- in the supervisor --------------------------------------------------- */

/* Reads what a rank wrote last; `shared` may be "". */
void bm_heartbeat_read(const char *folder, const char *shared, int rank,
                       bm_heartbeat *out);

#endif
