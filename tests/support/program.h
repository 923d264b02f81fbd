/*
 * program.h - the real program, started as a user starts it, in the folder of
 * folder.h.
 *
 *     program p;
 *
 *     digits_make();
 *     train(&p, "run", 2, "train.strategy=ssgd; job.workers=6");
 *     assert_ended(&p, 0);
 *
 * Training is described by one small configuration (a BLSTM with dropout,
 * clipping, newbob on a dev set, 4 workers) and by settings that differ from
 * it. Claims that fail show what the program said.
 */
#ifndef BM_TESTS_SUPPORT_PROGRAM_H
#define BM_TESTS_SUPPORT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct program {
    pid_t pid;
    int code; /* exit code, or 128 + the signal that ended it; -1: it runs */
    char out[64], err[64]; /* files of what it says */
} program;

/* Starts `bmuf` with these words, the last of them NULL, or waits for it, or
 * both. One that takes longer than a minute is killed, and the test fails. */
void program_start(program *p, const char *const *words);
void program_wait(program *p);
#define RUN_PROGRAM(p, ...)                                                    \
    (program_start((p), (const char *const[]){__VA_ARGS__, NULL}),             \
     program_wait(p))
bool program_runs(program *p);

/* Starts it as the only rank of a launcher that does nothing else. When that
 * has been killed and waited for, the program can be waited for. */
void program_launch(program *p, program *launcher, const char *const *words);

/* bmuf train into a directory of the folder; settings "section.key=value; ..".
 * One rank is started without -n. */
void train_start(program *p, const char *run, int ranks, const char *settings);
void train(program *p, const char *run, int ranks, const char *settings);

/* Of these settings one: a network with convolutions and statistics. */
#define NORMALISED                                                             \
    "model.net=conv:2,3x3 batchnorm leaky_relu pool:1x2 blstm:6 batchnorm "    \
    "dropout:0.2 linear"

void assert_ended(program *p, int code);
/* On stderr; and how often. */
void assert_said(const program *p, const char *words);
void assert_not_said(const program *p, const char *words);
int times_said(const program *p, const char *words);
void assert_printed(const program *p, const char *words); /* on stdout */

/* All living descendants of the program; returns how many. */
enum { FAMILY = 32 };
size_t family(const program *p, pid_t out[FAMILY]);
/* The number of the rank a process is; -1: it is none. */
int rank_of(pid_t pid);
/* Fails unless all have gone within ten seconds. */
void assert_gone(const pid_t *pids, size_t n);

/* Ends all programs that still run: the teardown of a group. */
int programs_end(void **state);

double now(void);
void pause_for(double seconds);

/* BMUF_TEST_SHORT is set where a program is slow, as under sanitizers. */
bool short_tests(void);

#endif
