#include "io/import/copies/copies.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Streams of random numbers of a copy. */
enum { SPEED, REVERB, NOISE };

struct bm_copies {
    bm_copies_source source;
    uint64_t seed;
    bm_speeds speeds;
    bm_perturb *perturb;
};

/* Babble needs two recordings, and would run the command of one that is made
 * by a command for each copy. */
static bm_status check_babble(const bm_copies *c)
{
    const bm_manifest *m = c->source.manifest;
    size_t each = bm_manifest_copies(m) + 1, n = bm_manifest_size(m);

    if (!bm_perturb_babbles(c->perturb))
        return BM_OK;
    if (n == each)
        return BM_FAIL(BM_ERR_CONFIG,
                       "copies.noise: babble is of other recordings, and %s "
                       "has only one; take white or pink",
                       bm_manifest_path(m));
    for (size_t i = 0; i < n; i += each)
        if (bm_manifest_is_pipe(bm_manifest_at(m, i).path))
            return BM_FAIL(BM_ERR_CONFIG,
                           "copies.noise: babble would run the command of "
                           "'%s', and of others, again for each copy; write "
                           "the outputs of commands to files, or take white "
                           "or pink",
                           bm_manifest_at(m, i).id);
    return BM_OK;
}

bm_status bm_copies_open(bm_copies **out, const bm_copies_settings *s,
                         const bm_copies_source *source)
{
    const bm_perturb_settings settings = {.sound = bm_copies_sound(s),
                                          .reverb = "copies.reverb",
                                          .noise = "copies.noise",
                                          .rate = source->rate};
    bm_copies *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies of recordings");
    c->source = *source;
    c->seed = (uint64_t)s->seed;
    if (!bm_speeds_read(s->speed, &c->speeds))
        BM_FAIL_DONE(BM_ERR_CONFIG, "copies.speed = %s is invalid", s->speed);
    BM_TRY_DONE(bm_perturb_open(&c->perturb, &settings));
    BM_TRY_DONE(check_babble(c));
    *out = c;
    c = NULL;
done:
    bm_copies_close(c);
    return status;
}

void bm_copies_close(bm_copies *c)
{
    if (c == NULL)
        return;
    bm_perturb_close(c->perturb);
    free(c);
}

const bm_perturb *bm_copies_perturb(const bm_copies *c)
{
    return c->perturb;
}

static bm_rng random_of(const bm_copies *c, const bm_manifest_row *row,
                        uint64_t stream)
{
    uint64_t name = XXH3_64bits(row->of, strlen(row->of));
    bm_rng rng = bm_rng_make(c->seed, "copies", name);

    rng.key = bm_rng_fork(bm_rng_fork(rng.key, row->copy), stream);
    return rng;
}

double bm_copies_speed(const bm_copies *c, const bm_manifest_row *row)
{
    const bm_speeds *s = &c->speeds;
    bm_rng rng = random_of(c, row, SPEED);

    if (row->copy == 0)
        return 1;
    if (s->range)
        return s->factor[0] +
               (s->factor[1] - s->factor[0]) * bm_rng_uniform(&rng);
    return s->factor[(row->copy - 1) % (size_t)s->n];
}

/* A recording of the manifest. One that cannot be read is reported by its own
 * row. */
static bm_status read_babble(void *self, size_t k, bm_sound *out,
                             bm_problem *problem)
{
    const bm_copies_source *source = self;
    const bm_manifest *m = source->manifest;
    bm_manifest_row row = bm_manifest_at(m, k * (bm_manifest_copies(m) + 1));

    return bm_sound_read(out, row.path, source->channel,
                         (bm_excerpt){row.start, row.duration, row.channel},
                         problem);
}

bm_status bm_copies_apply(const bm_copies *c, bm_perturber *t,
                          const bm_manifest_row *row, bm_sound *s,
                          bm_problem *problem)
{
    bm_copies_source source = c->source;
    size_t each = bm_manifest_copies(source.manifest) + 1;
    const bm_babble_source babble = {.n = bm_manifest_size(source.manifest) /
                                          each,
                                     .own = row->recording,
                                     .read = read_babble,
                                     .self = &source};
    const bm_perturb_draw draw = {.reverb = true,
                                  .noise = true,
                                  .for_reverb = random_of(c, row, REVERB),
                                  .for_noise = random_of(c, row, NOISE),
                                  .babble = &babble};

    BM_ASSERT(row->copy > 0);
    return bm_perturb_apply(t, &draw, s, problem);
}
