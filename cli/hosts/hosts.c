#include "cli/hosts/hosts.h"

#include "core/file/file.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters, digits and some punctuation; no option and no relative host. */
static bool is_name(const char *name, size_t n)
{
    if (n == 0 || n >= BM_HOST_NAME || name[0] == '-' || name[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) &&
            (name[i] == '\0' || strchr("-._@", name[i]) == NULL))
            return false;
    return name[n - 1] != '@' && name[0] != '@';
}

static bm_host *find(const bm_hosts *h, const char *name, size_t n)
{
    for (size_t i = 0; i < h->n; i++)
        if (strlen(h->list[i].name) == n &&
            strncmp(h->list[i].name, name, n) == 0)
            return &h->list[i];
    return NULL;
}

long bm_hosts_most(const bm_hosts *h)
{
    long sum = 0;

    for (size_t i = 0; i < h->n; i++)
        sum += h->list[i].most;
    return sum;
}

static bm_status grow(bm_hosts *h)
{
    bm_host *list = NULL;

    if (h->n == BM_MOST_HOSTS)
        return BM_FAIL(BM_ERR_ARG, "more than %d hosts", BM_MOST_HOSTS);
    if ((h->n & (h->n - 1)) != 0) /* room for the next power of two */
        return BM_OK;
    list = realloc(h->list, (h->n == 0 ? 1 : 2 * h->n) * sizeof *list);
    if (list == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu hosts", h->n);
    h->list = list;
    return BM_OK;
}

bm_status bm_hosts_add(bm_hosts *h, const char *name, size_t length, long slots,
                       long most)
{
    bm_host *host = NULL;

    if (!is_name(name, length))
        return BM_FAIL(BM_ERR_ARG,
                       "invalid host name '%.*s'; use letters, digits, '-', "
                       "'.' and '_', optionally after user@",
                       length < BM_HOST_NAME ? (int)length : BM_HOST_NAME,
                       name);
    if (bm_hosts_most(h) + most > BM_MOST_SLOTS)
        return BM_FAIL(BM_ERR_ARG, "%.*s: the hosts have more than %d slots",
                       (int)length, name, BM_MOST_SLOTS);
    host = find(h, name, length);
    if (host == NULL) {
        BM_TRY(grow(h));
        host = &h->list[h->n++];
        *host = (bm_host){0};
        memcpy(host->name, name, length);
    }
    host->slots += slots;
    host->most += most;
    return BM_OK;
}

bm_status bm_hosts_copy(bm_hosts *out, const bm_hosts *h)
{
    for (size_t i = 0; i < h->n; i++)
        BM_TRY(bm_hosts_add(out, h->list[i].name, strlen(h->list[i].name),
                            h->list[i].slots, h->list[i].most));
    return BM_OK;
}

void bm_hosts_free(bm_hosts *h)
{
    free(h->list);
    *h = (bm_hosts){0};
}

/* A number of slots, text [n]; -1: invalid. */
static long read_slots(const char *text, size_t n)
{
    long x = 0;

    if (n == 0 || n > 6)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)text[i]))
            return -1;
        x = 10 * x + text[i] - '0';
    }
    return x >= 1 && x <= BM_MOST_SLOTS ? x : -1;
}

bm_status bm_hosts_parse(bm_hosts *h, const char *text)
{
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ","), name = strcspn(at, ":,");
        long slots = 1;

        if (name < n)
            slots = read_slots(at + name + 1, n - name - 1);
        if (slots < 0)
            return BM_FAIL(BM_ERR_ARG,
                           "--hosts: '%.*s': the number of slots is not an "
                           "integer in [1, %d]; an example: a:4,b:4",
                           n < BM_HOST_NAME ? (int)n : BM_HOST_NAME, at,
                           BM_MOST_SLOTS);
        if (name == 0)
            return BM_FAIL(BM_ERR_ARG,
                           "--hosts %.200s: the name of a host is empty; "
                           "an example: a:4,b:4",
                           text);
        BM_TRY(bm_hosts_add(h, at, name, slots, slots));
        at += n;
        if (*at == '\0')
            return BM_OK;
    }
}

/* ---- hostfiles ---------------------------------------------------------- */

typedef struct line {
    const char *path;
    long number;
    const char *at, *end; /* what is left of it */
} line;

/* The next word of a line, as a pointer and a length; false: none. */
static bool next(line *l, const char **word, size_t *n)
{
    while (l->at < l->end && isspace((unsigned char)*l->at))
        l->at++;
    *word = l->at;
    while (l->at < l->end && !isspace((unsigned char)*l->at))
        l->at++;
    *n = (size_t)(l->at - *word);
    return *n > 0;
}

/* Reads "slots=4" or "max_slots=8", with blanks around the sign or without;
 * 0: not this key. */
static bm_status read_word(line *l, const char *word, size_t n, long *slots,
                           long *most)
{
    size_t key = 0;
    const char *value = NULL;
    long x = 0;

    while (key < n && word[key] != '=')
        key++;
    value = word + key;
    if (key == n && (!next(l, &value, &n) || *value != '='))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: line %ld: '%.*s': a host has slots=N and "
                       "max_slots=N, one host a line",
                       l->path, l->number, key < 80 ? (int)key : 80, word);
    n = (size_t)(l->at - value) - 1;
    value++;
    if (n == 0)
        (void)next(l, &value, &n);
    x = read_slots(value, n);
    if (x < 0)
        return BM_FAIL(
            BM_ERR_FORMAT, "%s: line %ld: %.*s is not an integer in [1, %d]",
            l->path, l->number, key < 80 ? (int)key : 80, word, BM_MOST_SLOTS);
    if (key == 5 && strncmp(word, "slots", key) == 0)
        *slots = x;
    else if (key == 9 && (strncmp(word, "max_slots", key) == 0 ||
                          strncmp(word, "max-slots", key) == 0))
        *most = x;
    else
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: line %ld: unknown word '%.*s'; bmuf knows slots "
                       "and max_slots",
                       l->path, l->number, key < 80 ? (int)key : 80, word);
    return BM_OK;
}

static bm_status read_line(bm_hosts *h, line *l)
{
    const char *name = NULL, *word = NULL;
    size_t n = 0, length = 0;
    long slots = 0, most = 0;

    if (!next(l, &name, &length))
        return BM_OK;
    while (next(l, &word, &n))
        BM_TRY(read_word(l, word, n, &slots, &most));
    if (most > 0 && most < slots)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: line %ld: max_slots=%ld is less than slots=%ld",
                       l->path, l->number, most, slots);
    if (bm_hosts_add(h, name, length, slots, most > slots ? most : slots) !=
        BM_OK)
        return BM_FAIL(BM_ERR_FORMAT, "%s: line %ld: %s", l->path, l->number,
                       bm_last_message());
    return BM_OK;
}

bm_status bm_hosts_read(bm_hosts *h, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    line l = {.path = path};
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, BM_HOSTFILE_BYTES, &text, &size));
    for (const char *at = text + bm_utf8_mark(text);
         status == BM_OK && at < text + size;) {
        size_t n = strcspn(at, "\n");

        l.number++;
        l.at = at;
        l.end = at + strcspn(at, "#\n");
        status = read_line(h, &l);
        at += n + 1;
    }
    free(text);
    if (status == BM_OK && h->n == 0)
        status = BM_FAIL(BM_ERR_FORMAT, "%s: no host in this hostfile", path);
    return status;
}

/* ---- dealing ------------------------------------------------------------ */

long bm_hosts_slots(const bm_hosts *h)
{
    long sum = 0;

    for (size_t i = 0; i < h->n; i++)
        sum += h->list[i].slots;
    return sum;
}

bm_status bm_hosts_deal(bm_hosts *h, long ranks)
{
    long left = ranks > 0 ? ranks : bm_hosts_slots(h);
    size_t n = 0;

    if (left > bm_hosts_most(h))
        return BM_FAIL(
            BM_ERR_ARG, "%s, but %s %ld %s; give fewer ranks, or more slots",
            bm_count_noun(left, "rank").text,
            h->n == 1 ? "the host has" : "the hosts have", bm_hosts_most(h),
            bm_hosts_most(h) == 1 ? "slot" : "slots");
    for (size_t i = 0; i < h->n; i++) {
        bm_host *host = &h->list[i];

        host->slots = host->slots < left ? host->slots : left;
        left -= host->slots;
    }
    for (size_t i = 0; i < h->n && left > 0; i++) {
        bm_host *host = &h->list[i];
        long more = host->most - host->slots;

        more = more < left ? more : left;
        host->slots += more;
        left -= more;
    }
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].slots > 0)
            h->list[n++] = h->list[i];
    h->n = n;
    return BM_OK;
}

char *bm_hosts_text(const bm_hosts *h)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return NULL;
    for (size_t i = 0; i < h->n; i++)
        fprintf(memory, "%s%s:%ld", i > 0 ? "," : "", h->list[i].name,
                h->list[i].slots);
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
