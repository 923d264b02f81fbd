#include "tests/cli/decode/decoding.h"

#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *printed(outcome o)
{
    assert_code(o, 0);
    return o.out;
}

const char *line_of(const char *all, size_t i)
{
    static char line[4096];

    while (i-- > 0) {
        all = strchr(all, '\n');
        assert_non_null(all);
        all++;
    }
    snprintf(line, sizeof line, "%.*s", (int)strcspn(all, "\n"), all);
    return line;
}

/* long.wav: all recordings of the set twice, and silence between. */
static void write_long(void)
{
    enum { PAUSE = 800, ROOM = 2 * N * (20 * 800 + PAUSE) };
    float *x = zeros(ROOM, sizeof *x);
    size_t n = 0;

    for (int i = 0; i < 2 * N; i++) {
        char name[32];

        snprintf(name, sizeof name, "test-%d.wav", i % N);
        n += read_samples(name, x + n, ROOM - n) + PAUSE;
    }
    write_samples("long.wav", 8000, x, n);
    free(x);
}

int make_decode_inputs(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "half", "--set",
                     "train.epochs=8", "--set", "schedule.kind=constant"),
                0);
    if (rename(in_folder("half/model.safetensors"),
               in_folder("half.safetensors")) != 0)
        return 1;
    write_text("pair", "test-0.wav\ntest-1.wav\n");
    write_text("one", "./test-4.wav\n");
    assert_int_equal(mkdir(in_folder("tree"), 0777), 0);
    assert_int_equal(mkdir(in_folder("tree/b"), 0777), 0);
    assert_int_equal(mkdir(in_folder("void"), 0777), 0);
    run_tool((char *[]){"cp", (char *)in_folder("test-4.wav"),
                        (char *)in_folder("tree"), NULL});
    run_tool((char *[]){"cp", (char *)in_folder("test-5.wav"),
                        (char *)in_folder("tree/zz"), NULL});
    run_tool((char *[]){"cp", (char *)in_folder("test-6.wav"),
                        (char *)in_folder("tree/b/z.wav"), NULL});
    write_text("tree/notes.txt", "no recording\n");
    write_text("empty.wav", "");
    write_text("noise.wav", "\001\002\003 these are no samples");
    write_text("story.txt", "Once upon a time\nthere was a text.\n");
    write_text("bad.jsonl", "{\"id\": \"a\", \n");
    write_bytes("page.png", "\x89PNG\r\n\x1a\n", 8);
    write_bytes("dev.hdf", "\x89HDF\r\n\x1a\n", 8);
    write_tone("short.wav", 80, 1, 8000);
    write_tone("silent.wav", 0, 1, 8000);
    run_tool((char *[]){"cp", (char *)in_folder("test-0.wav"),
                        (char *)in_folder("cut.wav"), NULL});
    cut_off(in_folder("cut.wav"), 0.7);
    write_long();
    write_text("pair.jsonl", "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n");
    assert_code(BMUF("pack", "--audio", "pair.jsonl", "--out", "other-set",
                     "--set", "features.mels=8", "--set", "features.shift_ms=5",
                     "--vocab", "train"),
                0);
    return 0;
}
