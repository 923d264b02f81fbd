/*
 * verbs.h - the verbs of the program. To add one: define bm_verb_<name> in
 * <name>.c, then add its line to BM_VERBS.
 */
#ifndef BM_CLI_VERBS_H
#define BM_CLI_VERBS_H

#include "cli/arguments.h"

#define BM_VERBS(X)                                                            \
    X(pack)                                                                    \
    X(check)                                                                   \
    X(info)                                                                    \
    X(show)                                                                    \
    X(train)                                                                   \
    X(tune)                                                                    \
    X(lm)                                                                      \
    X(eval)                                                                    \
    X(align)                                                                   \
    X(score)                                                                   \
    X(compare)                                                                 \
    X(decode)                                                                  \
    X(export)                                                                  \
    X(explain)                                                                 \
    X(scale)                                                                   \
    X(doctor)                                                                  \
    X(report)                                                                  \
    X(trace)                                                                   \
    X(bench)                                                                   \
    X(options)                                                                 \
    X(help)                                                                    \
    X(version)                                                                 \
    X(man)                                                                     \
    X(completions)

#define X(name) extern const bm_verb bm_verb_##name;
BM_VERBS(X)
#undef X

/* All verbs in this order, ended by NULL. */
const bm_verb *const *bm_verb_list(void);

/* Fails with BM_ERR_ARG, and the nearest verb if one is near. */
BM_CHECKED bm_status bm_verb_find(const char *name, const bm_verb **out);

#endif
