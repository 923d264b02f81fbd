/*
 * verbs.h - the verbs of the program. To add one: define bm_verb_<name> in
 * <name>.c, then add its line to BM_VERBS.
 */
#ifndef BM_CLI_VERBS_H
#define BM_CLI_VERBS_H

#include "cli/arguments.h"

#define BM_VERBS(X)                                                            \
    X(pack)                                                                    \
    X(info)                                                                    \
    X(check)                                                                   \
    X(train)                                                                   \
    X(eval)                                                                    \
    X(explain)                                                                 \
    X(scale)                                                                   \
    X(trace)                                                                   \
    X(options)                                                                 \
    X(bench)

#define X(name) extern const bm_verb bm_verb_##name;
BM_VERBS(X)
#undef X

#endif
