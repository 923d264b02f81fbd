/*
 * libfuzzer.c - the interface of clang's libFuzzer. The program has all
 * targets; --target=NAME says which one is to run.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static const fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char option[] = "--target=";

    for (int i = 1; i < *argc; i++)
        if (strncmp((*argv)[i], option, sizeof option - 1) == 0)
            target = fuzz_find((*argv)[i] + sizeof option - 1);
    if (target != NULL)
        return 0;
    fprintf(stderr, "usage: fuzz --target=NAME [OPTIONS] CORPUS; NAME is\n");
    for (size_t i = 0; fuzz_targets[i] != NULL; i++)
        fprintf(stderr, "    %s\n", fuzz_targets[i]->name);
    exit(64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(target, data, size);
    return 0;
}

/* Replaces a decimal number, one of `which`, by a number at a limit. */
static size_t change_number(uint8_t *data, size_t size, size_t room,
                            size_t which)
{
    static const char *const limits[] = {"0",
                                         "1",
                                         "-1",
                                         "7",
                                         "255",
                                         "256",
                                         "65536",
                                         "2147483647",
                                         "2147483648",
                                         "4294967295",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "1e300",
                                         "1e-300",
                                         "0.5",
                                         "nan",
                                         "inf",
                                         "1e999"};
    size_t n = 0, from = 0, to = 0, length = 0;
    const char *limit = limits[which % (sizeof limits / sizeof limits[0])];

    for (size_t i = 0; i < size; i++)
        n += isdigit(data[i]) && (i == 0 || !isdigit(data[i - 1]));
    if (n == 0)
        return size;
    n = which / 32 % n;
    for (size_t i = 0; i < size; i++)
        if (isdigit(data[i]) && (i == 0 || !isdigit(data[i - 1])) && n-- == 0) {
            from = i;
            break;
        }
    for (to = from; to < size && isdigit(data[to]);)
        to++;
    length = strlen(limit);
    if (size - (to - from) + length > room)
        return size;
    memmove(data + from + length, data + to, size - to);
    memcpy(data + from, limit, length);
    return size - (to - from) + length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room,
                               unsigned seed)
{
    if (seed % 8 == 0)
        size = change_number(data, size, room, seed / 8);
    else
        size = LLVMFuzzerMutate(data, size, room);
    if (target->repair != NULL && seed / 8 % 8 != 0)
        size = target->repair(data, size, room);
    return size;
}
