#include "tests/cli/packed/recordings.h"

#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- recordings ---------------------------------------------------------- */

int make_shards(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    write_text("texts.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"a b\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"b a\"}\n");
    write_speech("1.wav", "a b");
    write_speech("2.wav", "b a");
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w", "--units",
                     "words"),
                0);
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "c"), 0);
    return 0;
}

void list(const char *name, const char *key, size_t n, const entry rows[])
{
    char *text = calloc(n + 1, 200);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), 200,
                 "{\"id\": \"%s\", \"%s\": \"%s\", \"text\": \"a\"}\n",
                 rows[i].id, key, rows[i].path);
    write_text(name, text);
    free(text);
}

void list_recordings(const char *name, size_t n, size_t bad)
{
    char ids[128][24];
    entry rows[128];

    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "u%zu", i);
        rows[i].id = ids[i];
        rows[i].path = i < bad ? "short.wav" : "1.wav";
    }
    list(name, "audio", n, rows);
}

bool has_shards(const char *directory)
{
    char path[64];

    snprintf(path, sizeof path, "%s/data-00000.bmuf.h5", directory);
    return access(in_folder(path), F_OK) == 0;
}

/* ---- line images --------------------------------------------------------- */

int ink(size_t row, size_t column)
{
    if (column < 2)
        return 0;
    return column == 4 ? 252 : (int)((row * 37 + column * 11) % 28) * 4;
}

void draw(const char *name, unsigned width)
{
    unsigned char grey[HIGH * WIDEST];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = width,
                       .height = HIGH,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < (size_t)HIGH * width; i++)
        grey[i] = (unsigned char)(255 - ink(i / width, i % width));
    assert_true(
        png_image_write_to_file(&image, in_folder(name), 0, grey, 0, NULL));
}
