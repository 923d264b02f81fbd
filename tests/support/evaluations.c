#include "tests/support/evaluations.h"

#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

int make_half_trained(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "half", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant"),
                0);
    return rename(in_folder("half/model.safetensors"),
                  in_folder("half.safetensors"));
}

/* ---- results ------------------------------------------------------------- */

json_t *result_of(outcome o)
{
    assert_code(o, 0);
    return parse_json(o.out);
}

json_t *evaluate(const char *data, const char *hyp)
{
    outcome o = BMUF("eval", "half.safetensors", data, "--json", "--hyp", hyp);

    assert_int_equal(count_of(o.err, "\n"), count_of(o.err, "is unreliable"));
    return result_of(o);
}

void assert_same_result(const char *a, const char *b)
{
    json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);

    assert_non_null(x);
    assert_non_null(y);
    json_object_del(x, "seconds");
    json_object_del(y, "seconds");
    json_object_del(x, "model");
    json_object_del(y, "model");
    assert_int_equal(json_object_size(x), 22);
    assert_true(json_equal(x, y));
    json_decref(x);
    json_decref(y);
}

char *read_file(const char *name)
{
    static char text[4][N * LONGEST];
    static int turn;
    char *to = text[turn++ % 4];
    FILE *file = fopen(in_folder(name), "r");
    size_t n = 0;

    assert_non_null(file);
    n = fread(to, 1, sizeof text[0] - 1, file);
    fclose(file);
    to[n] = '\0';
    return to;
}

void read_trn(const char *name, char words[N][LONGEST])
{
    char *rest = NULL, *line = strtok_r(read_file(name), "\n", &rest);

    for (size_t i = 0; i < N; i++, line = strtok_r(NULL, "\n", &rest)) {
        char id[32];
        size_t n = 0;

        assert_non_null(line);
        n = strlen(line);
        snprintf(id, sizeof id, " (test-%zu)", i);
        assert_true(n >= strlen(id) && n < LONGEST);
        assert_string_equal(line + n - strlen(id), id);
        memcpy(words[i], line, n - strlen(id));
        words[i][n - strlen(id)] = '\0';
    }
    assert_null(line);
}

/* ---- sets ---------------------------------------------------------------- */

void write_manifest(const char *name, size_t first, size_t n, size_t end)
{
    char text[N * 100] = "";

    for (size_t i = first; i < end; i++) {
        size_t at = strlen(text);

        if (i < n)
            snprintf(text + at, sizeof text - at,
                     "{\"id\": \"test-%zu\", \"audio\": \"test-%zu.wav\", "
                     "\"text\": \"%s\"}\n",
                     i, i, speech_text(i));
        else
            snprintf(text + at, sizeof text - at,
                     "{\"id\": \"test-%zu\", \"audio\": \"test-%zu.wav\"}\n", i,
                     i);
    }
    write_text(name, text);
}

void pack_speech(const char *manifest, const char *set, const char *vocab,
                 const char *setting)
{
    assert_code(BMUF("pack", "--audio", manifest, "--out", set, "--vocab",
                     vocab, "--set", "features.mels=8", "--set", setting),
                0);
}
