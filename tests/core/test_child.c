#include "core/child.h"

#include "tests/support/support.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct received {
    char text[64];
    void (*end)(void);
} received;

static void work(void *self, FILE *out)
{
    const received *h = self;

    fprintf(out, "one\ntwo\nthr");
    fflush(out);
    h->end();
}

static void receive(void *self, const char *line)
{
    received *h = self;

    size_t n = strlen(h->text);

    snprintf(h->text + n, sizeof h->text - n, "%s.", line);
}

static void just_end(void) {}

static void be_killed(void)
{
    raise(SIGKILL);
}

static void crash(void)
{
    raise(SIGSEGV); /* for which cmocka has a handler */
}

static void loop(void)
{
    for (volatile bool forever = true; forever;)
        ;
}

static void leave(void)
{
    _exit(5);
}

static void
test_lines_of_a_child_are_received_until_it_ends_or_crashes(void **_)
{
    static const struct {
        void (*end)(void);
        int ended, or_else;
    } cases[] = {
        {just_end, 0, 0},          {be_killed, SIGKILL, SIGKILL},
        {crash, SIGSEGV, SIGSEGV}, {leave, -1, -1},
        {loop, SIGXCPU, SIGKILL},
    };

    (void)_;
    FOR_EACH (i, cases) {
        received h = {.end = cases[i].end};
        bm_child child = {
            .work = work, .receive = receive, .self = &h, .seconds = 1};
        int ended = 77;

        assert_ok(bm_child_run(&child, &ended));
        assert_true(ended == cases[i].ended || ended == cases[i].or_else);
        assert_string_equal(h.text, "one.two."); /* no half lines */
    }
}

/* Where SIGCHLD is ignored, the system keeps no exit status. */
static void test_an_end_that_is_not_known_is_no_success(void **_)
{
    received h = {.end = crash};
    bm_child child = {.work = work, .receive = receive, .self = &h};
    int ended = 77;

    (void)_;
    signal(SIGCHLD, SIG_IGN);
    assert_ok(bm_child_run(&child, &ended));
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(ended, -1);
    assert_string_equal(h.text, "one.two.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_lines_of_a_child_are_received_until_it_ends_or_crashes),
        cmocka_unit_test(test_an_end_that_is_not_known_is_no_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
