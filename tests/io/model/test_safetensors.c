/*
 * Files as the format's description has them, byte by byte; damaged, truncated
 * and forged files.
 */
#include "io/model/safetensors.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL /* not the library's code */
#include <xxhash.h>

static const float weights[6] = {1, -2, 0.5F, 3e-30F, -0.0F, 7};
static const int64_t place[2] = {3, 1234567890123};

static bm_st_tensor tensor(const char *name, bm_dtype dtype, int rank,
                           const uint64_t *dim)
{
    bm_st_tensor t = {.dtype = dtype, .rank = rank};

    snprintf(t.name, sizeof t.name, "%s", name);
    for (int i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return t;
}

static bm_status write_small(const char *path, bool sealed, uint64_t *bytes)
{
    bm_st_tensor at = tensor("place", BM_I64, 1, (uint64_t[]){2});
    bm_st_tensor w = tensor("w", BM_F32, 2, (uint64_t[]){2, 3});
    bm_st_tensor none = tensor("none", BM_F32, 2, (uint64_t[]){0, 5});
    bm_st_writer *writer = NULL;
    bm_st_commitment done = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_st_create(&writer, path, sealed));
    BM_TRY_DONE(
        bm_st_meta(writer, "config", "[job]\nworkers = 4 ; \"\xc3\xa4\""));
    BM_TRY_DONE(bm_st_declare(writer, &at));
    BM_TRY_DONE(bm_st_declare(writer, &none));
    BM_TRY_DONE(bm_st_declare(writer, &w));
    BM_TRY_DONE(bm_st_write(writer, place, sizeof place));
    BM_TRY_DONE(bm_st_write(writer, weights, 4));
    BM_TRY_DONE(bm_st_write(writer, weights + 1, sizeof weights - 4));
    BM_TRY_DONE(bm_st_commit(writer, &done));
    if (bytes != NULL)
        *bytes = done.bytes;
done:
    bm_st_close(writer);
    return status;
}

/* Opens a file, reads every tensor, and closes it. */
static bm_status read_all(const char *path, bool sealed)
{
    bm_st_file *f = NULL;
    char data[256];
    bm_status status = BM_OK;

    BM_TRY(bm_st_open(&f, path, sealed));
    for (size_t i = 0; i < bm_st_count(f); i++) {
        const bm_st_tensor *t = bm_st_at(f, i);
        uint64_t most = sizeof data / bm_dtype_size(t->dtype);
        BM_TRY_DONE(
            bm_st_read(f, t, 0, t->count < most ? t->count : most, data));
    }
done:
    bm_st_free(f);
    return status;
}

/* ---- writing --------------------------------------------------------------
 */

static uint64_t little_endian(const char *bytes, int n)
{
    uint64_t x = 0;

    while (n-- > 0)
        x = x << 8 | (unsigned char)bytes[n];
    return x;
}

static void check_entry(const json_t *header, const char *name,
                        const char *dtype, const char *shape, int begin,
                        int end)
{
    json_t *row = json_object_get(header, name);
    char *found = NULL, expected[200];

    assert_non_null(row);
    snprintf(expected, sizeof expected,
             "{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}", dtype,
             shape, begin, end);
    found = json_dumps(row, JSON_COMPACT);
    assert_string_equal(found, expected);
    free(found);
}

static void test_a_file_has_the_documented_layout(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "small.safetensors");
    uint64_t bytes = 0, length = 0;
    size_t n = 0;
    char *raw = NULL;
    json_t *header = NULL;
    XXH128_canonical_t sum;
    static const char seal[16] = "BMUFSUM1\1\0\0\0\0\0\0";

    (void)state;
    assert_ok(write_small(path, true, &bytes));
    raw = slurp(path, &n);
    assert_int_equal(n, bytes);
    XXH128_canonicalFromHash(&sum, XXH3_128bits(raw, n - 32));
    length = little_endian(raw, 8);
    assert_int_equal((8 + length) % 64, 0);
    assert_int_equal(raw[8], '{');
    assert_int_equal(n, 8 + length + 16 + 24 + 32);
    header = json_loadb(raw + 8, length, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_object_size(header), 5);
    check_entry(header, "place", "I64", "[2]", 0, 16);
    check_entry(header, "none", "F32", "[0,5]", 16, 16);
    check_entry(header, "w", "F32", "[2,3]", 16, 40);
    check_entry(header, "__bmuf_integrity__", "U8", "[32]", 40, 72);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(header, "__metadata__"), "config")),
                        "[job]\nworkers = 4 ; \"\xc3\xa4\"");
    raw += 8 + length;
    assert_int_equal(little_endian(raw + 8, 8), 1234567890123);
    assert_int_equal(little_endian(raw + 16, 4), 0x3f800000); /* 1.0F */
    assert_int_equal(little_endian(raw + 20, 4), 0xc0000000); /* -2.0F */
    assert_memory_equal(raw + 40, seal, sizeof seal);
    assert_memory_equal(raw + 56, sum.digest, sizeof sum.digest);
    free(raw - 8 - length);
    json_decref(header);
    assert_int_equal(scratch_count(&s, false), 1);
    scratch_close(&s);
}

static void test_tensors_are_read_back_whole_and_by_range(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "small.safetensors");
    bm_st_file *f = NULL;
    const bm_st_tensor *t = NULL;
    float w[6] = {0};
    int64_t at[2];

    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        assert_ok(write_small(path, sealed, NULL));
        assert_ok(bm_st_open(&f, path, sealed));
        assert_int_equal(bm_st_count(f), 3);
        assert_string_equal(bm_st_at(f, 0)->name, "place");
        assert_null(bm_st_find(f, "v"));
        assert_null(bm_st_find(f, "__bmuf_integrity__"));
        assert_null(bm_st_text(f, "license"));
        t = bm_st_find(f, "w");
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->dim[0], 2);
        assert_int_equal(t->dim[1], 3);
        assert_ok(bm_st_read(f, t, 0, 6, w));
        assert_memory_equal(w, weights, sizeof w);
        assert_ok(bm_st_read(f, t, 2, 3, w));
        assert_memory_equal(w, weights + 2, 3 * sizeof *w);
        assert_ok(bm_st_read(f, bm_st_find(f, "place"), 0, 2, at));
        assert_memory_equal(at, place, sizeof at);
        assert_ok(bm_st_read(f, bm_st_find(f, "none"), 0, 0, w));
        bm_st_free(f);
    }
    scratch_close(&s);
}

static void test_a_file_without_tensors_is_valid(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "none.safetensors");
    bm_st_writer *w = NULL;

    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        assert_ok(bm_st_create(&w, path, sealed));
        assert_ok(bm_st_commit(w, NULL));
        bm_st_close(w);
        assert_ok(read_all(path, sealed));
    }
    scratch_close(&s);
}

/* ---- failures of writing --------------------------------------------------
 */

static void check_kept(const scratch *s, const char *path)
{
    size_t n = 0;
    char *text = slurp(path, &n);

    assert_string_equal(text, "the old one");
    free(text);
    assert_int_equal(scratch_count(s, false), 1);
}

static void test_tensors_that_are_not_finite_are_not_written(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model");
    bm_st_tensor first = tensor("first", BM_F32, 1, (uint64_t[]){3000});
    bm_st_tensor second = tensor("second", BM_F32, 1, (uint64_t[]){3000});
    float *x = calloc(6000, sizeof *x);

    (void)state;
    spill(path, "the old one", 11);
    FOR_EACH (i, bad) {
        bm_st_writer *w = NULL;

        x[3000 + 2047 + i] = bad[i];
        assert_ok(bm_st_create(&w, path, true));
        assert_ok(bm_st_declare(w, &first));
        assert_ok(bm_st_declare(w, &second));
        assert_int_equal(bm_st_write(w, x, 6000 * sizeof *x), BM_ERR_NUMERIC);
        assert_non_null(strstr(bm_last_error(), "second"));
        assert_non_null(
            strstr(bm_last_error(), i == 0 ? "element 2047" : "element 204"));
        bm_st_close(w);
        check_kept(&s, path);
        x[3000 + 2047 + i] = 0;
    }
    free(x);
    scratch_close(&s);
}

static void test_a_full_disk_leaves_the_old_file(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model");
    bm_st_tensor big = tensor("big", BM_F32, 1, (uint64_t[]){1 << 20});
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    bm_st_writer *w = NULL;
    bm_status status = BM_OK;
    float x[16] = {0};

    (void)state;
    spill(path, "the old one", 11);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_ok(bm_st_create(&w, path, true));
    assert_ok(bm_st_declare(w, &big));
    status = bm_st_write(w, x, sizeof x);
    bm_st_close(w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, BM_ERR_IO);
    assert_non_null(strstr(bm_last_error(), "ulimit -f"));
    check_kept(&s, path);
    scratch_close(&s);
}

static void test_an_unfinished_file_is_removed(void **state)
{
    scratch s = scratch_open();
    bm_st_tensor t = tensor("t", BM_F32, 1, (uint64_t[]){2});
    bm_st_writer *w = NULL;
    float x = 1;

    (void)state;
    assert_ok(bm_st_create(&w, scratch_file(&s, "model"), true));
    assert_ok(bm_st_declare(w, &t));
    assert_ok(bm_st_write(w, &x, sizeof x));
    assert_int_equal(scratch_count(&s, false), 1);
    bm_st_close(w);
    assert_int_equal(scratch_count(&s, false), 0);

    /* A directory at `path` cannot be replaced. */
    assert_int_equal(bm_st_create(&w, s.path, false), BM_ERR_CREATE);
    assert_int_equal(bm_st_create(&w, scratch_file(&s, "no/model"), true),
                     BM_ERR_CREATE);
    scratch_close(&s);
}

static void test_texts_and_names_must_be_utf8(void **state)
{
    scratch s = scratch_open();
    bm_st_tensor t = tensor("\xff", BM_F32, 1, (uint64_t[]){1});
    bm_st_writer *w = NULL;

    (void)state;
    assert_ok(bm_st_create(&w, scratch_file(&s, "model"), true));
    assert_int_equal(bm_st_meta(w, "config", "\xc3"), BM_ERR_ARG);
    assert_ok(bm_st_declare(w, &t));
    assert_int_not_equal(bm_st_commit(w, NULL), BM_OK);
    bm_st_close(w);
    scratch_close(&s);
}

/* ---- damaged files --------------------------------------------------------
 */

static void test_a_truncated_file_is_rejected_at_every_length(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "cut");
    size_t n = 0;
    char *raw = NULL;

    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        assert_ok(write_small(path, sealed, NULL));
        raw = slurp(path, &n);
        for (size_t k = 0; k < n; k++) {
            spill(path, raw, k);
            assert_int_equal(read_all(path, sealed), BM_ERR_FORMAT);
            assert_non_null(strstr(bm_last_error(), path));
        }
        spill(path, raw, n);
        assert_ok(read_all(path, sealed));
        free(raw);
    }
    scratch_close(&s);
}

static void test_every_changed_byte_is_found(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "flipped");
    size_t n = 0;
    char *raw = NULL;

    (void)state;
    assert_ok(write_small(path, true, NULL));
    raw = slurp(path, &n);
    for (size_t k = 0; k < n; k++)
        for (int bit = 0; bit < 8; bit += 7) {
            raw[k] ^= (char)(1 << bit);
            spill(path, raw, n);
            assert_int_equal(read_all(path, true), BM_ERR_FORMAT);
            raw[k] ^= (char)(1 << bit);
        }
    free(raw);
    scratch_close(&s);
}

static void test_a_file_without_checksum_is_not_a_checkpoint(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model");
    bm_st_file *f = NULL;

    (void)state;
    assert_ok(write_small(path, false, NULL));
    assert_int_equal(bm_st_open(&f, path, true), BM_ERR_FORMAT);
    assert_int_equal(bm_st_open(&f, scratch_file(&s, "none"), true),
                     BM_ERR_MISSING);
    assert_int_equal(bm_st_open(&f, s.path, true), BM_ERR_MISSING);
    assert_null(f);
    scratch_close(&s);
}

static void test_tensors_that_are_not_finite_are_not_read(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model");
    size_t n = 0;
    char *raw = NULL;

    (void)state;
    assert_ok(write_small(path, false, NULL));
    raw = slurp(path, &n);
    memcpy(raw + n - 4, &(float){NAN}, 4);
    spill(path, raw, n);
    assert_int_equal(read_all(path, false), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "element 5 of w"));
    free(raw);
    scratch_close(&s);
}

/* ---- malicious files ------------------------------------------------------
 */

/* Writes a header and so many bytes of data. */
static void forge(const char *path, const char *header, size_t n, size_t data)
{
    char *raw = calloc(8 + n + data, 1);

    for (int i = 0; i < 8; i++)
        raw[i] = (char)((uint64_t)n >> 8 * i);
    memcpy(raw + 8, header, n);
    spill(path, raw, 8 + n + data);
    free(raw);
}

#define A(shape, begin, end)                                                   \
    "\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin    \
    "," end "]}"
#define B(shape, begin, end)                                                   \
    "\"b\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin    \
    "," end "]}"
#define TYPE(dtype)                                                            \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":[2],\"data_offsets\":[0,8]}}"

/* With 8 bytes of data. */
static const char *const honest[] = {
    "{" A("[2]", "0", "8") "}",
    "{" A("[2,1,1,1,1,1,1,1]", "0", "8") "}",
    "{" A("[1]", "4", "8") "," B("[]", "0", "4") "}  ",
    "{" A("[2]", "0", "8") "," B("[0,9]", "8", "8") "}",
    "{" A("[0]", "0", "0") "," B("[2]", "0", "8") "}",
    "{\"__metadata__\":{\"a\":\"b\"}," A("[2]", "0", "8") "}",
};

static const char *const hostile[] = {
    "",
    " ",
    "[]",
    "null",
    "{",
    "{}",                         /* 8 bytes too many */
    " {" A("[2]", "0", "8") "}",  /* does not begin with '{' */
    "{" A("[2]", "0", "8") "} x", /* trailing */
    "{" A("[2]", "0", "8") "," A("[2]", "0", "8") "}", /* twice */
    "{" A("[2]", "0", "8") "," B("[2]", "0", "8") "}", /* overlap */
    "{" A("[1]", "0", "4") "," B("[2]", "0", "8") "}",
    "{" A("[1]", "0", "4") "}",  /* bytes after it */
    "{" A("[1]", "4", "8") "}",  /* a hole before it */
    "{" A("[3]", "0", "12") "}", /* beyond the data */
    "{" A("[2]", "8", "0") "}",  /* end before begin */
    "{" A("[2]", "-8", "0") "}",
    "{" A("[2]", "0", "-8") "}",
    "{" A("[2]", "0.0", "8") "}",
    "{" A("[2]", "0", "8e0") "}",
    "{" A("[2]", "0", "\"8\"") "}",
    "{" A("[2]", "0", "18446744073709551624") "}",
    "{" A("[2]", "9223372036854775800", "9223372036854775807") "}",
    "{" A("[3]", "0", "8") "}", /* the shape disagrees */
    "{" A("[-2]", "0", "8") "}",
    "{" A("[2.0]", "0", "8") "}",
    "{" A("[true]", "0", "8") "}",
    "{" A("2", "0", "8") "}",
    "{" A("{}", "0", "8") "}",
    "{" A("[4294967296,4294967296]", "0", "0") "," B("[2]", "0", "8") "}",
    "{" A("[4611686018427387906]", "0", "8") "}", /* 4 n = 8 mod 2^64 */
    "{" A("[9223372036854775807,2,3]", "0", "8") "}",
    "{" A("[1,1,1,1,1,1,1,1,2]", "0", "8") "}", /* rank 9 */
    TYPE("\"I64\""),                            /* 16 bytes */
    TYPE("\"F31\""),
    TYPE("\"\""),
    TYPE("\"F16\""),
    TYPE("7"),
    TYPE("null"),
    "{\"a\":1}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}",
    "{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":"
    "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    "{\"__metadata__\":[]," A("[2]", "0", "8") "}",
    "{\"__metadata__\":{\"a\":1}," A("[2]", "0", "8") "}",
};

static void test_an_invalid_header_is_rejected(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "forged");

    (void)state;
    FOR_EACH (i, honest) {
        forge(path, honest[i], strlen(honest[i]), 8);
        assert_ok(read_all(path, false));
    }
    FOR_EACH (i, hostile) {
        forge(path, hostile[i], strlen(hostile[i]), 8);
        if (read_all(path, false) != BM_ERR_FORMAT)
            fail_msg("accepted: %s", hostile[i]);
    }
    scratch_close(&s);
}

static void check_length(const char *path, uint64_t length)
{
    char raw[64] = {0};

    for (int i = 0; i < 8; i++)
        raw[i] = (char)(length >> 8 * i);
    spill(path, raw, sizeof raw);
    assert_int_equal(read_all(path, false), BM_ERR_FORMAT);
}

/* Repeats `opening` up to 16 MB. */
static int read_repeated(const char *path, const char *opening)
{
    static const char begin[] = {'{', '"', 'a', '"', ':', '['};
    size_t n = (size_t)16 << 20, k = strlen(opening);
    char *header = malloc(n);
    bm_status status = BM_OK;

    if (header == NULL)
        return 1;
    for (size_t i = 0; i < n; i++)
        header[i] = opening[i % k];
    memcpy(header, begin, sizeof begin);
    forge(path, header, n, 0);
    free(header);
    status = read_all(path, false);
    return status != BM_ERR_FORMAT && status != BM_ERR_MEMORY;
}

/* 256 MB; false if the process already has more, as with sanitizers. */
static bool limit_memory(void)
{
    struct rlimit most = {(rlim_t)1 << 28, (rlim_t)1 << 28};
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        return false;
    fclose(file);
    return pages > most.rlim_cur / 4096 || setrlimit(RLIMIT_AS, &most) == 0;
}

static void test_a_huge_header_needs_little_memory(void **state)
{
    static const uint64_t lengths[] = {57,         64,         (16 << 20) + 1,
                                       1ULL << 40, 1ULL << 63, UINT64_MAX - 7,
                                       UINT64_MAX};
    static const char *const openings[] = {"[", "{\"a\":", "[],", "\"a\",",
                                           " "};
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "forged");
    int code = 0;
    pid_t child = 0;

    (void)state;
    FOR_EACH (i, lengths)
        check_length(path, lengths[i]);
    child = fork();
    if (child == 0) {
        if (!limit_memory())
            _exit(2);
        FOR_EACH (i, openings)
            if (read_repeated(path, openings[i]) != 0)
                _exit(10 + (int)i);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_has_the_documented_layout),
        cmocka_unit_test(test_tensors_are_read_back_whole_and_by_range),
        cmocka_unit_test(test_a_file_without_tensors_is_valid),
        cmocka_unit_test(test_tensors_that_are_not_finite_are_not_written),
        cmocka_unit_test(test_a_full_disk_leaves_the_old_file),
        cmocka_unit_test(test_an_unfinished_file_is_removed),
        cmocka_unit_test(test_texts_and_names_must_be_utf8),
        cmocka_unit_test(test_a_truncated_file_is_rejected_at_every_length),
        cmocka_unit_test(test_every_changed_byte_is_found),
        cmocka_unit_test(test_a_file_without_checksum_is_not_a_checkpoint),
        cmocka_unit_test(test_tensors_that_are_not_finite_are_not_read),
        cmocka_unit_test(test_an_invalid_header_is_rejected),
        cmocka_unit_test(test_a_huge_header_needs_little_memory),
    };
    return RUN_GROUP("safetensors", tests);
}
