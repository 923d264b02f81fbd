/*
 * command.h - runs the program to its end, in the folder of folder.h, and
 * checks its exit code and output. program.h runs it in the background.
 */
#ifndef BM_TESTS_SUPPORT_COMMAND_H
#define BM_TESTS_SUPPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct command {
    const char *program;      /* its path; NULL: bmuf */
    const char *const *words; /* arguments, ending with NULL */
    long address_bytes;       /* limit of its address space; 0: none */
    int ranks;                /* runs mpirun -np RANKS; 0: no mpirun */
    long file_bytes;          /* limit on file size; 0: none */
    int columns;              /* prints to a terminal of this width; 0: files */
    const char *term;         /* the terminal's TERM; NULL: xterm */
    const char *out;          /* a file for stdout; NULL: outcome.out */
    const char *in;           /* a file for stdin; NULL: this program's */
    bool deaf;                /* stdout is a pipe without a reader */
} command;

/* The texts are valid until OUTCOMES more commands have run. */
enum { OUTCOMES = 8 };
typedef struct outcome {
    int code;        /* 128 + n after signal n */
    const char *out; /* stdout; with a terminal stderr, too */
    const char *err; /* stderr */
} outcome;

outcome command_run(const command *c);

/* The path of bmuf, for a script. */
const char *bmuf_path(void);

/* Runs bmuf WORDS..; and mpirun -np N bmuf WORDS.. */
#define BMUF(...)                                                              \
    command_run(&(command){.words = (const char *const[]){__VA_ARGS__, NULL}})
#define BMUF_ON(n, ...)                                                        \
    command_run(&(command){.words = (const char *const[]){__VA_ARGS__, NULL},  \
                           .ranks = (n)})

/* Fails and prints all output unless the exit code is this one. */
#define assert_code(o, code) assert_code_at((o), (code), __FILE__, __LINE__)
void assert_code_at(outcome o, int code, const char *file, int line);

/* The number of occurrences of `what` in the text. */
size_t count_of(const char *text, const char *what);
/* Fails unless `what` is in the text. */
#define assert_says(text, what)                                                \
    assert_says_at((text), (what), __FILE__, __LINE__)
void assert_says_at(const char *text, const char *what, const char *file,
                    int line);

/* Fails unless the program failed properly: this exit code, nothing on stdout,
 * and one message "bmuf: .." that names no source file and has all `words`. */
#define assert_fails(o, code, ...)                                             \
    assert_fails_at((o), (code), (const char *const[]){__VA_ARGS__, NULL},     \
                    __FILE__, __LINE__)
void assert_fails_at(outcome o, int code, const char *const *words,
                     const char *file, int line);

#endif
