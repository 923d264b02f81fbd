/*
 * command.h - the real program, started as a user starts it, in the folder of
 * tests/support/folder.h.
 */
#ifndef BM_TESTS_SUPPORT_COMMAND_H
#define BM_TESTS_SUPPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct command {
    const char *const *words; /* after the program's name, ending with NULL */
    int ranks;                /* of an mpirun in front of it; 0: none */
    long file_bytes;          /* the longest file it may write; 0: any */
    int columns;              /* of a terminal, for all it prints; 0: none */
    const char *term;         /* the terminal's TERM; NULL: xterm */
    const char *out;          /* where its results go; NULL: outcome.out */
    bool deaf;                /* results go to a pipe that nobody reads */
} command;

/* Texts are borrowed, until so many more commands have run. */
enum { OUTCOMES = 8 };
typedef struct outcome {
    int code;        /* 128 + n after signal n */
    const char *out; /* results; from a terminal everything */
    const char *err; /* messages */
} outcome;

outcome command_run(const command *c);

/* bmuf WORDS.., plainly; and under mpirun -np RANKS. */
#define BMUF(...)                                                              \
    command_run(&(command){.words = (const char *const[]){__VA_ARGS__, NULL}})
#define BMUF_ON(n, ...)                                                        \
    command_run(&(command){.words = (const char *const[]){__VA_ARGS__, NULL},  \
                           .ranks = (n)})

/* Fails, and shows what was printed, unless it ended with this code. */
#define assert_code(o, code) assert_code_at((o), (code), __FILE__, __LINE__)
void assert_code_at(outcome o, int code, const char *file, int line);

/* How often `what` stands in the text. */
size_t count_of(const char *text, const char *what);
/* Fails unless it stands there. */
#define assert_says(text, what)                                                \
    assert_says_at((text), (what), __FILE__, __LINE__)
void assert_says_at(const char *text, const char *what, const char *file,
                    int line);

/* A failure as users want it: this code, nothing on stdout, one message "bmuf:
 * ..", with no name of a source file, in which all `words` stand. */
#define assert_fails(o, code, ...)                                             \
    assert_fails_at((o), (code), (const char *const[]){__VA_ARGS__, NULL},     \
                    __FILE__, __LINE__)
void assert_fails_at(outcome o, int code, const char *const *words,
                     const char *file, int line);

#endif
