#include "tests/support/spans.h"

#include "tests/support/folder.h"
#include "tests/support/remains.h"
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

json_t *load_json(const char *name)
{
    json_error_t error;
    json_t *file =
        json_load_file(in_folder(name), JSON_REJECT_DUPLICATES, &error);

    if (file == NULL)
        fail_msg("%s:%d: %s", name, error.line, error.text);
    return file;
}

bool is_named(const json_t *span, const char *name)
{
    return strcmp(text(span, "name"), name) == 0;
}

bool on_one_thread(const json_t *a, const json_t *b)
{
    return number(a, "tid") == number(b, "tid") &&
           number(a, "pid") == number(b, "pid");
}

/* From the i-th event on, the next one of a kind. */
static const json_t *next_event(const json_t *file, const char *kind, size_t *i)
{
    const json_t *events = json_object_get(file, "traceEvents");

    while (*i < json_array_size(events)) {
        const json_t *e = json_array_get(events, (*i)++);
        if (strcmp(text(e, "ph"), kind) == 0)
            return e;
    }
    return NULL;
}

const json_t *next_span(const json_t *file, size_t *i)
{
    return next_event(file, "X", i);
}

static bool is_word(const json_t *e, const char *key)
{
    return json_string_length(json_object_get(e, key)) > 0;
}

static bool is_number(const json_t *e, const char *key)
{
    return json_is_integer(json_object_get(e, key)) &&
           json_integer_value(json_object_get(e, key)) >= 0;
}

static bool is_time(const json_t *e, const char *key)
{
    return json_is_number(json_object_get(e, key)) && number(e, key) >= 0;
}

enum { NAMES = 64 };

/* Names of a span's process, or thread, among these, which end with NULL. */
static int names_of(const json_t *const *names, const json_t *span, bool thread)
{
    int n = 0;

    for (; *names != NULL; names++)
        n += is_named(*names, thread ? "thread_name" : "process_name") &&
             number(*names, "pid") == number(span, "pid") &&
             (!thread || on_one_thread(*names, span));
    return n;
}

static void list_names(const json_t *file, const json_t *out[NAMES + 1])
{
    const json_t *m = NULL;
    size_t i = 0, n = 0;

    while ((m = next_event(file, "M", &i)) != NULL) {
        assert_true(n < NAMES);
        out[n++] = m;
    }
    out[n] = NULL;
}

void assert_chrome_trace(const json_t *file)
{
    const json_t *events = json_object_get(file, "traceEvents"), *e = NULL;
    const char *unit =
        json_string_value(json_object_get(file, "displayTimeUnit"));
    const json_t *names[NAMES + 1];
    size_t i = 0;

    assert_true(json_is_array(events) && json_array_size(events) > 0);
    assert_string_equal(unit, "ms"); /* or ns: nothing else is known */
    list_names(file, names);
    json_array_foreach(events, i, e)
    {
        const json_t *args = json_object_get(e, "args");
        bool span = is_word(e, "ph") && strcmp(text(e, "ph"), "X") == 0;

        assert_true(is_word(e, "ph") && is_word(e, "name"));
        assert_true(is_number(e, "pid") && is_number(e, "tid"));
        assert_true(args == NULL || json_is_object(args));
        if (span) {
            assert_true(is_word(e, "cat"));
            assert_true(is_time(e, "ts") && is_time(e, "dur"));
            assert_int_equal(names_of(names, e, false), 1);
            assert_int_equal(names_of(names, e, true), 1);
        } else {
            assert_string_equal(text(e, "ph"), "M");
            assert_true(is_named(e, "process_name") ||
                        is_named(e, "thread_name"));
            assert_true(is_word(args, "name"));
        }
    }
}

size_t count_spans(const json_t *file, const char *name)
{
    const json_t *e = NULL;
    size_t n = 0;

    FOR_EACH_SPAN(e, file)
    n += is_named(e, name);
    return n;
}

const json_t *find_span(const json_t *file, const char *name)
{
    const json_t *e = NULL;

    FOR_EACH_SPAN(e, file)
    if (is_named(e, name))
        return e;
    fail_msg("there is no span %s", name);
    return NULL;
}

static long long nanoseconds(const json_t *span, const char *key)
{
    return llround(1e3 * number(span, key));
}

long long begin_of(const json_t *span)
{
    return nanoseconds(span, "ts");
}

long long length_of(const json_t *span)
{
    return nanoseconds(span, "dur");
}

long long end_of(const json_t *span)
{
    return begin_of(span) + length_of(span);
}

long long block_of(const json_t *span)
{
    const json_t *b = json_object_get(json_object_get(span, "args"), "block");

    return b != NULL ? json_integer_value(b) : -1;
}

const char *thread_of(const json_t *file, const json_t *span)
{
    const json_t *m = NULL;
    size_t i = 0;

    while ((m = next_event(file, "M", &i)) != NULL)
        if (is_named(m, "thread_name") && on_one_thread(m, span))
            return text(json_object_get(m, "args"), "name");
    fail_msg("thread %g has no name", number(span, "tid"));
    return NULL;
}
