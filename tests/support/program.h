/*
 * program.h - runs the program in the background, in the folder of folder.h.
 *
 *     program p;
 *
 *     digits_make();
 *     train(&p, "run", 2, "train.strategy=ssgd; job.workers=6");
 *     assert_ended(&p, 0);
 *
 * Training uses a small configuration (a BLSTM with dropout, clipping, newbob
 * on a dev set, 4 workers) and settings that override it. A failed assertion
 * prints the last messages of the program.
 */
#ifndef BM_TESTS_SUPPORT_PROGRAM_H
#define BM_TESTS_SUPPORT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct program {
    pid_t pid;
    int code;              /* exit code, or 128 + signal; -1: it is running */
    char out[64], err[64]; /* files of stdout and stderr */
} program;

/* Starts `bmuf` with these words, the last of them NULL; waits for it; does
 * both. If it runs for more than a minute the test fails. */
void program_start(program *p, const char *const *words);
void program_wait(program *p);
#define RUN_PROGRAM(p, ...)                                                    \
    (program_start((p), (const char *const[]){__VA_ARGS__, NULL}),             \
     program_wait(p))
bool program_runs(program *p);
void show_end(const char *path); /* prints the last lines of a file */

/* Starts it as the only rank of a launcher process that does nothing else. Once
 * the launcher was killed and waited for, program_wait works for the
 * program. */
void program_launch(program *p, program *launcher, const char *const *words);

/* bmuf train into a directory of the folder; settings "section.key=value; ..",
 * with options such as "--max-restarts 0" among them. One rank is started
 * without -n. */
void train_start(program *p, const char *run, int ranks, const char *settings);
void train(program *p, const char *run, int ranks, const char *settings);

/* A setting: a network with convolutions and statistics. */
#define NORMALISED                                                             \
    "model.net=conv:2,3x3 batchnorm leaky_relu pool:1x2 blstm:6 batchnorm "    \
    "dropout:0.2 linear"

void assert_ended(program *p, int code);
/* Text on stderr, and the number of lines with it. */
void assert_said(const program *p, const char *words);
void assert_not_said(const program *p, const char *words);
int times_said(const program *p, const char *words);
/* Waits until it is there; false: the program ended without it. mpirun passes on
 * what ranks print later than they write their journal. */
bool said_comes(program *p, const char *words);
void assert_printed(const program *p, const char *words); /* on stdout */

/* Lists all running descendants of the program; returns how many. */
enum { FAMILY = 32 };
size_t family(const program *p, pid_t out[FAMILY]);
/* The rank of a process; -1: it is not a rank. */
int rank_of(pid_t pid);
/* Has it ended? A zombie has. */
bool is_gone(pid_t pid);

/* Fails unless all processes end within ten seconds. */
void assert_gone(const pid_t *pids, size_t n);

/* Teardown of a group: kills all programs that still run. */
int programs_end(void **state);

double now(void);
void pause_for(double seconds);

/* Is BMUF_TEST_SHORT set, as in slow builds with sanitizers? */
bool short_tests(void);

#endif
