/*
 * lm.c - questions to a language model, and its compact file.
 *
 * One walk from the word back through the words before it finds both the longest
 * n-gram, whose p counts, and the back-off weights of the new state, which are
 * those of the nodes on the way. A file is checked before it is used: sizes,
 * offsets of texts and a checksum. Numbers of nodes are limited where they are
 * used.
 */
#include "models/decoding/lm.h"

#include "core/file/file.h"
#include "models/decoding/lm_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char magic[8] = "bmuf-lm\n";

/* ---- questions ----------------------------------------------------------- */

int bm_lm_order(const bm_lm *lm)
{
    return (int)lm->header->order;
}

uint64_t bm_lm_count(const bm_lm *lm, int order)
{
    return lm->header->counts[order - 1];
}

uint64_t bm_lm_bytes(const bm_lm *lm)
{
    return lm->size;
}

uint32_t bm_lm_unknown(const bm_lm *lm)
{
    return lm->header->unknown;
}

uint32_t bm_lm_end(const bm_lm *lm)
{
    return lm->header->end;
}

bool bm_lm_is_special(const bm_lm *lm, uint32_t word)
{
    const bm_lm_header *h = lm->header;

    return word == h->begin || word == h->end || word == h->unknown;
}

const char *bm_lm_word(const bm_lm *lm, uint32_t word)
{
    BM_ASSERT(word < lm->header->counts[0]);
    return lm->texts + lm->offsets[word];
}

uint32_t bm_lm_find(const bm_lm *lm, const char *word)
{
    uint32_t low = 0, high = (uint32_t)lm->header->counts[0];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(bm_lm_word(lm, middle), word);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return lm->header->unknown;
}

/* Defines find_<kind>(nodes, low, high, word): the node of a word in [low, high),
 * or high. */
#define FINDER(kind)                                                           \
    static uint64_t find_##kind(const bm_lm_##kind *nodes, uint64_t low,       \
                                uint64_t high, uint32_t word)                  \
    {                                                                          \
        uint64_t end = high;                                                   \
                                                                               \
        while (low < high) {                                                   \
            uint64_t middle = low + (high - low) / 2;                          \
                                                                               \
            if (nodes[middle].word < word)                                     \
                low = middle + 1;                                              \
            else                                                               \
                high = middle;                                                 \
        }                                                                      \
        return low < end && nodes[low].word == word ? low : end;               \
    }
FINDER(node)
FINDER(leaf)

double bm_lm_score(const bm_lm *lm, const bm_lm_state *from, uint32_t word,
                   bm_lm_state *to)
{
    const bm_lm_header *h = lm->header;
    const bm_lm_node *node = &lm->levels[0][word];
    uint32_t matched = 1;
    double p = (double)node->p;

    to->n = 0;
    if (h->order > 1) {
        to->n = 1;
        to->words[0] = word;
        to->backoff[0] = node->backoff;
    }
    while (matched < h->order && matched <= from->n) {
        uint64_t end = node[1].first, at = 0;

        if (end > h->counts[matched])
            end = h->counts[matched];
        if (matched + 1 == h->order) {
            at = find_leaf(lm->leaves, node->first, end,
                           from->words[matched - 1]);
            if (at >= end)
                break;
            p = (double)lm->leaves[at].p;
            matched++;
            break;
        }
        at = find_node(lm->levels[matched], node->first, end,
                       from->words[matched - 1]);
        if (at >= end)
            break;
        node = &lm->levels[matched][at];
        p = (double)node->p;
        to->words[matched] = node->word;
        to->backoff[matched] = node->backoff;
        to->n = ++matched;
    }
    for (uint32_t i = matched; i <= from->n; i++)
        p += (double)from->backoff[i - 1];
    return p;
}

void bm_lm_begin(const bm_lm *lm, bm_lm_state *out)
{
    bm_lm_state nothing = {0};

    *out = nothing;
    if (lm->header->begin != BM_LM_NONE)
        bm_lm_score(lm, &nothing, lm->header->begin, out);
}

/* ---- the compact file ---------------------------------------------------- */

uint64_t bm_lm_size(const bm_lm_header *h)
{
    static const uint64_t most = (uint64_t)1 << 60;
    uint64_t size = sizeof *h;

    if (h->order < 1 || h->order > BM_LM_MOST || h->text_bytes > most)
        return 0;
    for (uint32_t k = 0; k < h->order; k++) {
        bool leaf = k > 0 && k + 1 == h->order;

        if (h->counts[k] >= UINT32_MAX)
            return 0;
        size += leaf ? h->counts[k] * sizeof(bm_lm_leaf)
                     : (h->counts[k] + 1) * sizeof(bm_lm_node);
    }
    return size + (h->counts[0] + 1) * sizeof(uint64_t) + h->text_bytes;
}

uint64_t bm_lm_checksum(const void *memory, size_t size)
{
    bm_lm_header header = *(const bm_lm_header *)memory;

    header.checksum = 0;
    return XXH3_64bits_withSeed((const char *)memory + sizeof header,
                                size - sizeof header,
                                XXH3_64bits(&header, sizeof header));
}

static bool texts_fit(const bm_lm *lm)
{
    const bm_lm_header *h = lm->header;

    if (lm->offsets[0] != 0 || lm->offsets[h->counts[0]] > h->text_bytes)
        return false;
    for (uint64_t i = 0; i < h->counts[0]; i++)
        if (lm->offsets[i] >= lm->offsets[i + 1] ||
            lm->offsets[i + 1] > h->text_bytes ||
            lm->texts[lm->offsets[i + 1] - 1] != '\0')
            return false;
    return true;
}

bm_status bm_lm_attach(bm_lm *lm, const char *path)
{
    const bm_lm_header *h = lm->memory;
    const char *at = lm->memory;

    lm->header = h;
    at += sizeof *h;
    lm->offsets = (const void *)at;
    at += (h->counts[0] + 1) * sizeof(uint64_t);
    lm->texts = at;
    at += h->text_bytes;
    for (uint32_t k = 0; k < h->order; k++) {
        if (k > 0 && k + 1 == h->order) {
            lm->leaves = (const void *)at;
            break;
        }
        lm->levels[k] = (const void *)at;
        at += (h->counts[k] + 1) * sizeof(bm_lm_node);
    }
    if (h->text_bytes % 8 != 0 || !texts_fit(lm) ||
        h->unknown >= h->counts[0] ||
        (h->begin >= h->counts[0] && h->begin != BM_LM_NONE) ||
        (h->end >= h->counts[0] && h->end != BM_LM_NONE))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: words of the language model are damaged; make it "
                       "again with bmuf lm",
                       path);
    return BM_OK;
}

static bm_status check_header(const bm_lm_header *h, uint64_t size,
                              const char *path)
{
    if (h->one != 1 || h->version != 1)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s was made by another version of bmuf or on a machine "
                       "with another byte order; make it again with bmuf lm",
                       path);
    if (h->bytes != size || bm_lm_size(h) != size)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has %llu bytes in place of %llu; copy it again, or "
                       "make it again with bmuf lm",
                       path, (unsigned long long)size,
                       (unsigned long long)h->bytes);
    return BM_OK;
}

static bm_status map(bm_lm *lm, int fd, uint64_t size, const char *path)
{
    const bm_lm_header *h = NULL;

    if (size < sizeof *h)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s ends after %llu bytes, within its header; copy it "
                       "again, or make it again with bmuf lm",
                       path, (unsigned long long)size);
    lm->memory = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (lm->memory == MAP_FAILED) {
        lm->memory = NULL;
        return BM_FAIL(errno == ENOMEM ? BM_ERR_MEMORY : BM_ERR_IO,
                       "%s cannot be mapped into memory: %s", path,
                       strerror(errno));
    }
    lm->mapped = true;
    lm->size = (size_t)size;
    h = lm->memory;
    BM_TRY(check_header(h, size, path));
    if (bm_lm_checksum(lm->memory, lm->size) != h->checksum)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s is damaged: its checksum is wrong; copy it again, or "
            "make it again with bmuf lm",
            path);
    return bm_lm_attach(lm, path);
}

static bm_status read_arpa(bm_lm **out, int fd, const char *path)
{
    bm_lm_source source = {0};
    bm_status status = bm_lm_arpa_read(&source, fd, path);

    if (status == BM_OK)
        status = bm_lm_build(out, &source, path);
    bm_lm_source_free(&source);
    return status;
}

bm_status bm_lm_open(bm_lm **out, const char *path)
{
    char begin[sizeof magic] = "";
    struct stat info;
    bm_status status = BM_OK;
    bm_lm *lm = NULL;
    int fd = -1;

    BM_TRY(bm_file_open_regular(&fd, path));
    if (fstat(fd, &info) != 0 || pread(fd, begin, sizeof begin, 0) < 0)
        BM_FAIL_DONE(BM_ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    if (memcmp(begin, magic, sizeof magic) != 0) {
        BM_TRY_DONE(read_arpa(out, fd, path));
        goto done;
    }
    lm = calloc(1, sizeof *lm);
    if (lm == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %s", path);
    BM_TRY_DONE(map(lm, fd, (uint64_t)info.st_size, path));
    *out = lm;
    lm = NULL;
done:
    bm_lm_close(lm);
    close(fd);
    return status;
}

void bm_lm_close(bm_lm *lm)
{
    if (lm == NULL)
        return;
    if (lm->mapped)
        munmap(lm->memory, lm->size);
    else
        free(lm->memory);
    free(lm);
}

bool bm_lm_is_compact(const char *path)
{
    char begin[sizeof magic] = "";
    int fd = -1;
    bool compact = false;

    if (bm_file_open_regular(&fd, path) != BM_OK)
        return false;
    compact = pread(fd, begin, sizeof begin, 0) == sizeof begin &&
              memcmp(begin, magic, sizeof magic) == 0;
    close(fd);
    return compact;
}

bm_status bm_lm_write(const bm_lm *lm, const char *path)
{
    return bm_file_write(path, lm->memory, lm->size);
}
