#include "cli/launch/returns.h"

#include "cli/hosts/reach.h"
#include "core/log.h"

#include <sys/wait.h>
#include <unistd.h>

/* In the child: does not return. */
static void ask(const bm_returns *r)
{
    static const bm_log_style silent = {.most = BM_ERROR};
    bm_hosts asked = {0}, lost = {0};

    bm_log_use_style(&silent);
    _exit(bm_hosts_copy(&asked, r->lost) == BM_OK &&
                  bm_reach_keep(&asked, &lost, r->folder) == BM_OK
              ? 0
              : 1);
}

double bm_returns_every(int made)
{
    enum { FIRST_S = 20, MOST = 6 };

    return FIRST_S << (made < MOST ? made : MOST);
}

bool bm_returns_look(bm_returns *r, double now)
{
    int state = 0;

    if (r->lost->n == 0)
        return false;
    if (r->next == 0)
        r->next = now + r->every_s;
    if (r->child > 0 && waitpid(r->child, &state, WNOHANG) == r->child) {
        r->child = 0;
        r->next = now + r->every_s;
        return WIFEXITED(state) && WEXITSTATUS(state) == 0;
    }
    if (r->child > 0 || now < r->next)
        return false;
    r->child = fork();
    if (r->child == 0)
        ask(r);
    if (r->child < 0)
        r->next = now + r->every_s;
    return false;
}

void bm_returns_close(bm_returns *r)
{
    if (r->child <= 0)
        return;
    /* The child ends within seconds; it removes its mark and ends its ssh. */
    waitpid(r->child, NULL, 0);
    r->child = 0;
}
