#include "tests/spans.h"

#include "tests/folder.h"
#include "tests/remains.h"
#include "tests/support.h"

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

bool is_named(const json_t *span, const char *name)
{
    return strcmp(text(span, "name"), name) == 0;
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

bool on_one_thread(const json_t *a, const json_t *b)
{
    return number(a, "tid") == number(b, "tid");
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
