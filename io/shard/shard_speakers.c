/* shard_speakers.c - who spoke or wrote the sequences of a shard. The tables have
 * no checksum, so numbers are compared with the list of names. */
#include "io/shard/shard_parts.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_there(const bm_shard *s, const char *name)
{
    return H5Lexists(s->file.id, name, H5P_DEFAULT) > 0;
}

static bm_status check_numbers(const bm_shard *s, const int32_t *number,
                               uint64_t speakers)
{
    for (size_t i = 0; i < s->t.n; i++)
        if (number[i] < -1 ||
            (number[i] >= 0 && (uint64_t)number[i] >= speakers))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: /bmuf/speaker: sequence %zu has speaker "
                           "%" PRId32 " of %" PRIu64 "; pack it again",
                           s->path, i, number[i], speakers);
    return BM_OK;
}

/* Shards of other programs may lack both tables. */
static bm_status read_speakers(bm_shard *s)
{
    uint64_t n = s->t.n, speakers = 0;
    size_t width = 0;
    void *number = NULL;
    char *names = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_shard_file_open(s));
    if (!is_there(s, "bmuf/speaker") || !is_there(s, "bmuf/speakers"))
        goto done;
    BM_TRY_DONE(
        bm_h5_table(&s->file, "bmuf/speaker", H5T_STD_I32LE, 0, &n, &number));
    BM_TRY_DONE(
        bm_h5_strings(&s->file, "bmuf/speakers", &speakers, &width, &names));
    BM_TRY_DONE(check_numbers(s, number, speakers));
    s->speaker = number;
    s->speakers = names;
    s->speaker_width = width;
    number = NULL;
    names = NULL;
done:
    s->speakers_read = status == BM_OK;
    free(number);
    free(names);
    return status;
}

bm_status bm_shard_speaker(bm_shard *s, size_t sequence, const char **out)
{
    bm_status status = BM_OK;

    BM_ASSERT(sequence < s->t.n);
    if (!s->speakers_read) {
        bm_h5_enter();
        status = read_speakers(s);
        bm_h5_leave();
    }
    BM_TRY(status);
    *out = s->speaker == NULL || s->speaker[sequence] < 0
               ? ""
               : s->speakers + (size_t)s->speaker[sequence] * s->speaker_width;
    return BM_OK;
}
