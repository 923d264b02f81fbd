#include "tests/support/dump.h"

#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t number(const char *bytes, size_t n)
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

static char *read_file(const char *name, size_t *size)
{
    FILE *file = fopen(in_folder(name), "rb");
    char *bytes = NULL;
    long n = 0;

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    n = ftell(file);
    rewind(file);
    assert_true(n > 22);
    bytes = malloc((size_t)n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)n, file), n);
    fclose(file);
    *size = (size_t)n;
    return bytes;
}

static void read_npy(dump_array *a, const char *npy, size_t size)
{
    char header[200] = "";
    size_t length = number(npy + 8, 2);

    assert_memory_equal(npy, "\x93NUMPY\x01\x00", 8);
    assert_true(length < sizeof header && (10 + length) % 64 == 0);
    memcpy(header, npy + 10, length);
    assert_int_equal(header[length - 1], '\n');
    assert_int_equal(sscanf(header,
                            "{'descr': '<f4', 'fortran_order': False, 'shape': "
                            "(%zu, %zu), }",
                            &a->rows, &a->columns),
                     2);
    assert_int_equal(size, 10 + length + 4 * a->rows * a->columns);
    a->x = (const float *)(const void *)(npy + 10 + length);
}

/* An entry of the directory, and what it stands for. Returns its length. */
static size_t read_entry(dump_array *a, const char *bytes, const char *entry)
{
    const char *local = bytes + number(entry + 42, 4);
    size_t size = number(entry + 24, 4), name = number(entry + 28, 2);
    const char *data = local + 30 + name + number(local + 28, 2);

    assert_int_equal(number(entry, 4), 0x02014b50);
    assert_int_equal(number(local, 4), 0x04034b50);
    assert_int_equal(number(entry + 10, 2), 0); /* not compressed */
    assert_memory_equal(local + 4, entry + 6, 26);
    assert_memory_equal(local + 30, entry + 46, name);
    assert_int_equal(number(entry + 16, 4), crc_of(data, size));
    assert_true(name > 4 && name < sizeof a->name);
    assert_memory_equal(entry + 46 + name - 4, ".npy", 4);
    memcpy(a->name, entry + 46, name - 4);
    read_npy(a, data, size);
    return 46 + name + number(entry + 30, 2) + number(entry + 32, 2);
}

dump dump_read(const char *name)
{
    size_t size = 0, at = 0;
    dump d = {.bytes = read_file(name, &size)};
    const char *end = d.bytes + size - 22;

    assert_int_equal(number(end, 4), 0x06054b50);
    d.n = number(end + 10, 2);
    at = number(end + 16, 4);
    assert_int_equal(number(end + 8, 2), d.n);
    d.arrays = calloc(d.n + 1, sizeof *d.arrays);
    assert_non_null(d.arrays);
    for (size_t i = 0; i < d.n; i++)
        at += read_entry(&d.arrays[i], d.bytes, d.bytes + at);
    assert_int_equal(at, size - 22);
    return d;
}

void dump_free(dump *d)
{
    free(d->arrays);
    free(d->bytes);
}

const dump_array *dump_find(const dump *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->arrays[i].name, name) == 0)
            return &d->arrays[i];
    print_error("there is no array %s\n", name);
    assert_true(false);
    return NULL;
}
