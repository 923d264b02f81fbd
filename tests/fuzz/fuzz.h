/*
 * fuzz.h - fuzz targets: each reads one kind of input as the program does. No
 * input may crash a reader, leak, take long, or make a text that the same
 * reader refuses. docs/fuzzing.md says how to run them.
 *
 * To add one: write fuzz_<name>.c, add a line to FUZZ_TARGETS, and put small
 * inputs into corpus/<name>/. libfuzzer.c mutates inputs, replay.c runs those
 * of the corpus as a test.
 */
#ifndef BM_TESTS_FUZZ_FUZZ_H
#define BM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FUZZ_TARGETS(X)                                                        \
    X(config)                                                                  \
    X(net)                                                                     \
    X(manifest)                                                                \
    X(vocab)                                                                   \
    X(lm)                                                                      \
    X(lexicon)                                                                 \
    X(hosts)                                                                   \
    X(shard)                                                                   \
    X(tables)                                                                  \
    X(safetensors)                                                             \
    X(checkpoint)                                                              \
    X(model)                                                                   \
    X(features)                                                                \
    X(kaldi)                                                                   \
    X(returnn)                                                                 \
    X(image)                                                                   \
    X(page)                                                                    \
    X(idx)                                                                     \
    X(unipen)                                                                  \
    X(sound)                                                                   \
    X(texts)                                                                   \
    X(journal)                                                                 \
    X(trace)

typedef struct fuzz_target {
    const char *name;
    const char *file; /* what the input is called; its ending may matter */
    /* Reads the input, which is in memory and in the file at `path`. */
    void (*run)(const char *path, const uint8_t *data, size_t size);
    /* Makes checksums and lengths of a mutant right again, so that it passes
     * the first checks. Returns its size, at most `room`. NULL: no-op. */
    size_t (*repair)(uint8_t *data, size_t size, size_t room);
} fuzz_target;

/* All targets, ending with NULL. */
extern const fuzz_target *const fuzz_targets[];

/* The target of this name; NULL if there is none. */
const fuzz_target *fuzz_find(const char *name);

/* Writes the input to its file, in a folder of this process, and runs the
 * target. */
void fuzz_run(const fuzz_target *target, const uint8_t *data, size_t size);

/* Another path in that folder, valid until the fourth call from here. */
const char *fuzz_path(const char *name);

/* Where output goes that nobody reads. */
FILE *fuzz_null(void);

/* A copy with '\0' behind it, without other zeros; free(). */
char *fuzz_text(const uint8_t *data, size_t size);

/* For safetensors files: where the JSON header ends, at most `size`. */
size_t fuzz_header_end(const uint8_t *data, size_t size);

/* The repair of safetensors files: the length of the header. */
size_t fuzz_repair_header(uint8_t *data, size_t size, size_t room);

/* Ends the program with a message that says which rule the reader broke. */
#define FUZZ_RULE(condition)                                                   \
    do {                                                                       \
        if (!(condition))                                                      \
            fuzz_broken(__FILE__, __LINE__, #condition);                       \
    } while (0)
void fuzz_broken(const char *file, int line, const char *rule)
    __attribute__((noreturn));

#endif
