#include "tests/support/results.h"

#include "io/model/checkpoint.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- JSON and numbers in text -------------------------------------------- */

json_t *parse_json(const char *json)
{
    json_error_t error;
    json_t *value = json_loads(json, JSON_REJECT_DUPLICATES, &error);

    if (value == NULL)
        fail_msg("%s in: %s", error.text, json);
    return value;
}

double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}

const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (value == NULL)
        fail_msg("no text '%s'", key);
    return value;
}

double number_after(const char *printed, const char *words)
{
    const char *at = strstr(printed, words);
    char *end = NULL;
    double x = 0;

    if (at == NULL) {
        fail_msg("'%s' is not in: %s", words, printed);
        return x;
    }
    at += strlen(words);
    x = strtod(at, &end);
    if (end == at)
        fail_msg("no number follows '%s' in: %s", words, printed);
    return x;
}

/* ---- runs ---------------------------------------------------------------- */

static const char *path_in(const char *run, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", run, name);
    return in_folder(path);
}

json_t *journal(const char *run)
{
    FILE *file = fopen(path_in(run, "journal.jsonl"), "r");
    json_t *all = json_array();
    char *line = NULL;
    size_t room = 0;

    assert_non_null(file);
    while (getline(&line, &room, file) >= 0) {
        json_error_t error;
        json_t *row = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (row == NULL)
            fail_msg("%s: %s: %s", run, error.text, line);
        assert_true(json_is_object(row));
        json_array_append_new(all, row);
    }
    free(line);
    fclose(file);
    return all;
}

int events(const char *run, const char *kind)
{
    FILE *file = fopen(path_in(run, "journal.jsonl"), "r");
    char start[64], *line = NULL;
    size_t room = 0;
    int n = 0;

    if (file == NULL)
        return 0;
    snprintf(start, sizeof start, "{\"event\":\"%s\"", kind);
    while (getline(&line, &room, file) >= 0)
        n += strncmp(line, start, strlen(start)) == 0 &&
             strchr(line, '\n') != NULL;
    free(line);
    fclose(file);
    return n;
}

bool event_comes(program *p, const char *run, const char *kind, int n)
{
    while (events(run, kind) < n) {
        if (!program_runs(p))
            break;
        pause_for(0.001);
    }
    if (events(run, kind) >= n)
        return true;
    print_message("    | %s: no %d events '%s' before the end, exit %d\n", run,
                  n, kind, p->code);
    show_end(p->err);
    return false;
}

json_t *last_event(const char *run, const char *kind)
{
    json_t *all = journal(run), *out = NULL;

    for (size_t i = json_array_size(all); i-- > 0 && out == NULL;) {
        json_t *row = json_array_get(all, i);
        if (strcmp(text(row, "event"), kind) == 0)
            out = json_incref(row);
    }
    json_decref(all);
    if (out == NULL)
        fail_msg("%s: no event '%s'", run, kind);
    return out;
}

static void assert_same_file(const char *run, const char *other,
                             const char *name)
{
    size_t size[2];
    char *model[] = {slurp(path_in(run, name), &size[0]),
                     slurp(path_in(other, name), &size[1])};

    if (size[0] != size[1] || memcmp(model[0], model[1], size[0]) != 0)
        fail_msg("%s of %s and of %s differ", name, run, other);
    free(model[0]);
    free(model[1]);
}

void assert_same_model(const char *run, const char *other)
{
    static const char *const more[] = {"model-best.safetensors",
                                       "model-ema.safetensors"};
    json_t *end[] = {last_event(run, "end"), last_event(other, "end")};

    if (strcmp(text(end[0], "digest"), text(end[1], "digest")) != 0)
        fail_msg("%s ended with %s, %s with %s", run, text(end[0], "digest"),
                 other, text(end[1], "digest"));
    json_decref(end[0]);
    json_decref(end[1]);
    assert_same_file(run, other, "model.safetensors");
    FOR_EACH (i, more)
        if (access(path_in(run, more[i]), F_OK) == 0 ||
            access(path_in(other, more[i]), F_OK) == 0)
            assert_same_file(run, other, more[i]);
}

const char *checkpoint_of(const char *run, int blocks)
{
    static char path[PATH_MAX];

    bm_checkpoint_path(path_in(run, "checkpoints"), blocks, path, sizeof path);
    return path;
}

int checkpoints(const char *run, int *newest)
{
    enum { MOST = 256 };
    int64_t list[MOST] = {0};
    size_t n = 0;

    assert_int_equal(
        bm_checkpoint_list(path_in(run, "checkpoints"), list, MOST, &n), BM_OK);
    *newest = (int)list[0];
    return (int)n;
}

void forget_checkpoints(const char *run)
{
    run_tool((char *[]){"sed", "-i", "/^{\"event\":\"checkpoint\"/d",
                        (char *)path_in(run, "journal.jsonl"), NULL});
}

void copy_run(const char *from, const char *to)
{
    remove_run(to);
    run_tool((char *[]){"cp", "-r", (char *)in_folder(from),
                        (char *)in_folder(to), NULL});
}

void remove_run(const char *run)
{
    run_tool((char *[]){"rm", "-rf", (char *)in_folder(run), NULL});
}

void damage(const char *path, double share, size_t bytes)
{
    size_t size = 0;
    char *data = slurp(path, &size);
    size_t from = (size_t)(share * (double)size);

    assert_true(from + bytes <= size);
    for (size_t i = from; i < from + bytes; i++)
        data[i] ^= 0x15;
    spill(path, data, size);
    free(data);
}

void cut_off(const char *path, double share)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, (off_t)(share * (double)info.st_size)), 0);
}

/* ---- traces -------------------------------------------------------------- */

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

/* The next event of a kind, from the i-th on; NULL: no more. */
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

/* The number of names of a span's process, or thread, in a list that ends with
 * NULL. */
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
    assert_string_equal(unit, "ms"); /* the format knows ms and ns */
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
    fail_msg("no span %s", name);
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

/* ---- .npz files ---------------------------------------------------------- */

static size_t little_endian(const char *bytes, size_t n)
{
    size_t x = 0;

    for (size_t i = n; i-- > 0;)
        x = x << 8 | (unsigned char)bytes[i];
    return x;
}

/* CRC-32 of zip: reflected polynomial EDB88320. */
static size_t crc_of(const char *bytes, size_t n)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/* "3, 4" or "3," */
static void read_shape(dump_array *a, const char *shape)
{
    int n = 0;

    a->rows = a->columns = 1;
    for (; sscanf(shape, "%zu%n", &a->dim[a->rank], &n) == 1; shape += n) {
        *(a->rank == 0 ? &a->rows : &a->columns) *= a->dim[a->rank];
        assert_true(++a->rank < 4 || shape[n] == ')');
        n += (int)strspn(shape + n, ", ");
    }
    assert_memory_equal(shape, "), }", 4);
}

static void read_npy(dump_array *a, const char *npy, size_t size)
{
    char header[200] = "", type[16] = "";
    size_t length = little_endian(npy + 8, 2), bytes = 0;
    int at = 0;
    char *data = NULL;

    assert_memory_equal(npy, "\x93NUMPY\x01\x00", 8);
    assert_true(length < sizeof header && (10 + length) % 64 == 0);
    memcpy(header, npy + 10, length);
    assert_int_equal(header[length - 1], '\n');
    assert_int_equal(sscanf(header,
                            "{'descr': '%15[^']', 'fortran_order': False, "
                            "'shape': (%n",
                            type, &at),
                     1);
    read_shape(a, header + at);
    bytes = 4 * a->rows * a->columns;
    if (strcmp(type, "<f4") != 0) {
        assert_int_equal(sscanf(type, "|S%zu", &bytes), 1);
        assert_int_equal(a->rank, 0);
    }
    assert_int_equal(size, 10 + length + bytes);
    data = calloc(bytes + 1, 1); /* aligned */
    assert_non_null(data);
    memcpy(data, npy + 10 + length, bytes);
    if (type[0] == '<')
        a->x = (float *)(void *)data;
    else
        a->text = data;
}

/* Reads an entry of the directory and its array; returns the entry's length. */
static size_t read_entry(dump_array *a, const char *bytes, const char *entry)
{
    const char *local = bytes + little_endian(entry + 42, 4);
    size_t size = little_endian(entry + 24, 4),
           name = little_endian(entry + 28, 2);
    const char *data = local + 30 + name + little_endian(local + 28, 2);

    assert_int_equal(little_endian(entry, 4), 0x02014b50);
    assert_int_equal(little_endian(local, 4), 0x04034b50);
    assert_int_equal(little_endian(entry + 10, 2), 0); /* not compressed */
    assert_memory_equal(local + 4, entry + 6, 26);
    assert_memory_equal(local + 30, entry + 46, name);
    assert_int_equal(little_endian(entry + 16, 4), crc_of(data, size));
    assert_true(name > 4 && name < sizeof a->name);
    assert_memory_equal(entry + 46 + name - 4, ".npy", 4);
    memcpy(a->name, entry + 46, name - 4);
    read_npy(a, data, size);
    return 46 + name + little_endian(entry + 30, 2) +
           little_endian(entry + 32, 2);
}

dump dump_read(const char *name)
{
    size_t size = 0, at = 0;
    dump d = {.bytes = slurp(in_folder(name), &size)};
    const char *end = d.bytes + size - 22;

    assert_true(size > 22);
    assert_int_equal(little_endian(end, 4), 0x06054b50);
    d.n = little_endian(end + 10, 2);
    at = little_endian(end + 16, 4);
    assert_int_equal(little_endian(end + 8, 2), d.n);
    d.arrays = calloc(d.n + 1, sizeof *d.arrays);
    assert_non_null(d.arrays);
    for (size_t i = 0; i < d.n; i++)
        at += read_entry(&d.arrays[i], d.bytes, d.bytes + at);
    assert_int_equal(at, size - 22);
    return d;
}

void dump_free(dump *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->arrays[i].x);
        free(d->arrays[i].text);
    }
    free(d->arrays);
    free(d->bytes);
}

const dump_array *dump_find(const dump *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->arrays[i].name, name) == 0)
            return &d->arrays[i];
    print_error("no array %s\n", name);
    assert_true(false);
    return NULL;
}
