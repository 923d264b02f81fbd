#include "tests/recognise/transcribing.h"

#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

bm_transcriber *open_model(const char *name)
{
    bm_transcriber *t = NULL;

    assert_ok(bm_transcriber_open(&t, in_folder(name), NULL));
    return t;
}

bm_transcript *transcribe(bm_transcriber *t, const char *name)
{
    bm_transcript *text = NULL;

    assert_ok(bm_transcriber_file(t, in_folder(name), NULL, &text));
    return text;
}

bool same(const bm_transcript *a, const bm_transcript *b)
{
    const bm_reading *x = a->readings, *y = b->readings;
    bool equal = a->n == 1 && b->n == 1 && strcmp(x->text, y->text) == 0 &&
                 x->score == y->score && x->n_words == y->n_words &&
                 a->length == b->length && a->height == b->height;

    for (size_t i = 0; equal && i < x->n_words; i++)
        equal = strcmp(x->words[i].text, y->words[i].text) == 0 &&
                x->words[i].start == y->words[i].start &&
                x->words[i].end == y->words[i].end &&
                x->words[i].confidence == y->words[i].confidence;
    return equal;
}

void make_model(const char *kind, const char *manifest, const char *set,
                const char *setting, const char *run)
{
    char data[64], out[64];

    assert_code(BMUF("pack", kind, manifest, "--out", set, "--set", setting,
                     "--set", "shard.unit_frames=100"),
                0);
    snprintf(data, sizeof data, "data.train=%s", set);
    snprintf(out, sizeof out, "%s", run);
    assert_code(BMUF("train", "tiny.ini", "--out", out, "--set", data, "--set",
                     "data.dev=", "--set", "train.epochs=40", "--set",
                     "block.frames_total=2000", "--set",
                     "schedule.kind=constant"),
                0);
}
