/*
 * Recordings in Vorbis, Opus and MP3: length and tone are right, excerpts are
 * those of the whole, and files that end early are reported. A format that this
 * libsndfile cannot write is left out, with a line that says so.
 */
#include "io/sound/sound.h"
#include "io/sound/sound_folder.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RATE = 16000, LENGTH = 16000, HZ = 440 };

static const struct {
    const char *name;
    int format;
} files[] = {
    {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
    {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS},
    {"a.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III},
};

/* Writes a second of a tone; false if this libsndfile cannot. */
static bool write_lossy(size_t f)
{
    static int x[LENGTH];
    SF_INFO info = {
        .samplerate = RATE, .channels = 1, .format = files[f].format};
    SNDFILE *file = sf_open(in_folder("probe"), SFM_WRITE, &info);

    if (file == NULL) {
        print_message("left out %s: libsndfile cannot write it: %s\n",
                      files[f].name, sf_strerror(NULL));
        return false;
    }
    sf_close(file);
    make_tone(x, LENGTH, 1, HZ, RATE);
    write_sound(files[f].name, files[f].format, x, LENGTH, 1, RATE);
    return true;
}

/* Reads it; the decoder must not print anything. kind: of the problem; "":
 * there is none. */
static bm_sound read_part(const char *name, bm_excerpt part, const char *kind)
{
    int kept = dup(STDERR_FILENO);
    int file = open(in_folder("errors"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    bm_problem problem = {0};
    bm_sound s = {0};
    bm_status status = BM_OK;
    char *printed = NULL;
    size_t size = 0;

    assert_true(kept >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    status = bm_sound_read(&s, in_folder(name), 0, part, &problem);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    close(file);
    assert_ok(status);
    printed = slurp(in_folder("errors"), &size);
    assert_string_equal(printed, "");
    free(printed);
    assert_string_equal(bm_problem_is(&problem) ? problem.kind : "", kind);
    if (bm_problem_is(&problem))
        assert_non_null(strstr(problem.text, name));
    return s;
}

static bm_sound read_whole(const char *name)
{
    return read_part(name, (bm_excerpt){0}, "");
}

/* Cycles of a loud tone: from well below zero to well above it. */
static size_t cycles(const bm_sound *s)
{
    bool below = false;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        n += below && s->x[i] > 1000;
        below = s->x[i] < -1000 || (below && s->x[i] <= 1000);
    }
    return n;
}

static void test_length_and_tone_are_those_that_were_written(void **state)
{
    (void)state;
    FOR_EACH (f, files) {
        bm_sound s = {0};
        double power = 0;

        if (!write_lossy(f))
            continue;
        s = read_whole(files[f].name);
        assert_int_equal(s.rate, RATE);
        assert_int_equal(s.n, LENGTH);
        assert_in_range(cycles(&s), HZ - 2, HZ + 2);
        for (size_t i = LENGTH / 4; i < 3 * LENGTH / 4; i++)
            power += (double)s.x[i] * s.x[i] / (LENGTH / 2.0);
        assert_true(near(power, 9000.0 * 9000 / 2, 0.05)); /* of the sine */
        bm_sound_free(&s);
    }
}

static void test_excerpts_are_parts_of_the_whole(void **state)
{
    static const struct {
        bm_excerpt part;
        size_t first, end;
    } parts[] = {
        {{0.5, 0, 0}, 8000, 16000},
        {{0, 0.25, 0}, 0, 4000},
        {{0.62505, 0.10005, 0}, 10001, 11602}, /* 10000.8, 11601.6 */
        {{0.75, 0.255, 0}, 12000, 16000},      /* 80 samples are missing */
    };

    (void)state;
    FOR_EACH (f, files) {
        bm_sound all = {0};

        if (!write_lossy(f))
            continue;
        all = read_whole(files[f].name);
        FOR_EACH (p, parts) {
            bm_sound s = read_part(files[f].name, parts[p].part, "");

            assert_int_equal(s.n, parts[p].end - parts[p].first);
            assert_memory_equal(s.x, all.x + parts[p].first, s.n * sizeof *s.x);
            bm_sound_free(&s);
        }
        bm_sound_free(&all);
    }
}

/* Of one recording in order, with gaps and without, and then back; and of another
 * file that takes its place. */
static void test_excerpts_go_on_from_the_last_one(void **state)
{
    static const size_t firsts[] = {800, 4800, 8800, 1600, 12800};
    enum { EACH = 4000, LAST = 3200 };

    (void)state;
    FOR_EACH (f, files) {
        static int x[LENGTH];
        bm_sound all = {0}, s = {0};
        bm_problem problem = {0};

        if (!write_lossy(f))
            continue;
        all = read_whole(files[f].name);
        FOR_EACH (k, firsts) {
            const struct bm_sound_source *open = s.open;
            size_t n = firsts[k] + EACH > LENGTH ? LAST : EACH;
            bool later = k > 0 && firsts[k] > firsts[k - 1];

            assert_ok(bm_sound_read(
                &s, in_folder(files[f].name), 0,
                (bm_excerpt){(double)firsts[k] / RATE, (double)n / RATE, 0},
                &problem));
            assert_string_equal(problem.text, "");
            assert_int_equal(s.n, n);
            assert_memory_equal(s.x, all.x + firsts[k], n * sizeof *s.x);
            assert_non_null(s.open);
            if (later)
                assert_ptr_equal(s.open, open);
        }
        write_sound(files[f].name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, LENGTH,
                    1, RATE);
        assert_ok(bm_sound_read(&s, in_folder(files[f].name), 0,
                                (bm_excerpt){0.9, 0.05, 0}, &problem));
        assert_string_equal(problem.text, "");
        assert_int_equal(s.n, 800);
        for (size_t i = 0; i < s.n; i++)
            assert_true(s.x[i] == 0);
        assert_null(s.open); /* WAV has an index */
        bm_sound_free(&s);
        bm_sound_free(&all);
    }
}

/* ---- the end ------------------------------------------------------------- */

static void assert_truncated(const char *name)
{
    bm_sound s = read_part(name, (bm_excerpt){0}, "damaged or truncated");

    bm_sound_free(&s);
}

static void test_truncated_recordings_are_problems(void **state)
{
    enum { CUTS = 8, FIRST = 2 }; /* before these there may be no header yet */

    (void)state;
    FOR_EACH (f, files) {
        size_t size = 0;
        char *bytes = NULL;

        if (!write_lossy(f))
            continue;
        bytes = slurp(in_folder(files[f].name), &size);
        for (size_t k = FIRST; k < CUTS; k++) {
            write_bytes(files[f].name, bytes, size * k / CUTS);
            assert_truncated(files[f].name);
        }
        free(bytes);
    }
}

/* A page of Ogg is complete or not, to the byte, and so is a frame of MP3. */
static void test_recordings_without_the_last_byte_are_truncated(void **state)
{
    (void)state;
    FOR_EACH (f, files) {
        size_t size = 0;
        char *bytes = NULL;
        bm_sound s = {0};

        if (!write_lossy(f))
            continue;
        bytes = slurp(in_folder(files[f].name), &size);
        write_bytes(files[f].name, bytes, size - 1);
        assert_truncated(files[f].name);
        write_bytes(files[f].name, bytes, size / 2);
        s = read_part(files[f].name, (bm_excerpt){0.9, 0.05, 0},
                      "damaged or truncated");
        bm_sound_free(&s);
        free(bytes);
    }
}

/* ID3 in front, of 2 * 128 + 5 bytes, and more bytes behind than frames. */
static void test_mp3_with_tags_is_complete(void **state)
{
    static const char tag[10 + 261] = {'I', 'D', '3', 4, 0, 0, 0, 0, 2, 5};
    static const char last[] = {'T', 'A', 'G'};
    static char all[100000];
    size_t size = 0, n = sizeof tag;
    char *bytes = NULL;
    bm_sound s = {0};

    (void)state;
    if (!write_lossy(2))
        skip();
    bytes = slurp(in_folder("a.mp3"), &size);
    memcpy(all, tag, n);
    memcpy(all + n, bytes, size);
    n += size;
    memcpy(all + n, last, sizeof last);
    n += 1280;
    write_bytes("a.mp3", all, n);
    s = read_whole("a.mp3");
    assert_int_equal(s.n, LENGTH);
    bm_sound_free(&s);
    free(bytes);
}

/* One behind the other, as `cat` makes it, and MP3 with an ID3 tag between. */
static void test_joined_recordings_are_problems(void **state)
{
    static const char tag[10 + 5] = {'I', 'D', '3', 4, 0, 0, 0, 0, 0, 5};

    (void)state;
    FOR_EACH (f, files) {
        size_t size = 0;
        char *bytes = NULL, *all = NULL;
        const bm_excerpt parts[] = {{0}, {0.25, 0.5, 0}, {1.25, 0.5, 0}};

        if (!write_lossy(f))
            continue;
        bytes = slurp(in_folder(files[f].name), &size);
        all = malloc(2 * size + sizeof tag);
        assert_non_null(all);
        for (size_t gap = 0; gap <= (f == 2 ? sizeof tag : 0);
             gap += sizeof tag) {
            memcpy(all, bytes, size);
            memcpy(all + size, tag, gap);
            memcpy(all + size + gap, bytes, size);
            write_bytes(files[f].name, all, 2 * size + gap);
            FOR_EACH (p, parts) {
                bm_sound s = read_part(files[f].name, parts[p],
                                       "several recordings in one file");

                bm_sound_free(&s);
            }
        }
        free(all);
        free(bytes);
    }
}

static uint64_t digest_of(const char *folder)
{
    bm_sound_folder f = {0};
    uint64_t digest = 0;

    assert_ok(bm_sound_folder_list(&f, in_folder(folder), "noise", RATE));
    digest = f.digest;
    bm_sound_folder_free(&f);
    return digest;
}

/* noises/a.mp3 holds these bytes. Ranks compare digests. */
static void assert_digests_tell_folders_apart(const char *bytes, size_t size)
{
    uint64_t first = digest_of("noises");

    assert_int_equal(mkdir(in_folder("others"), 0700), 0);
    write_bytes("others/a.mp3", bytes, size);
    assert_true(digest_of("others") == first);
    write_bytes("others/b.mp3", bytes, size);
    assert_true(digest_of("others") != first);
    assert_int_equal(unlink(in_folder("others/a.mp3")), 0);
    assert_true(digest_of("others") != first);
}

/* With a variable bit rate the first frames say nothing of the length. The frame
 * that had the header is silent, and the ends are played, too. */
static void test_mp3_without_a_header_is_read_to_its_end(void **state)
{
    enum { SPARE = 4 * 576 };
    size_t size = 0, at = 0;
    char *bytes = NULL;
    bm_sound_folder noises = {0};
    bm_sound s = {0};

    (void)state;
    if (!write_lossy(2))
        skip();
    bytes = slurp(in_folder("a.mp3"), &size);
    while (at + 4 < size && memcmp(bytes + at, "Xing", 4) != 0)
        at++;
    assert_true(at < 64);
    memset(bytes + at, 0, 4);
    write_bytes("a.mp3", bytes, size);
    s = read_whole("a.mp3");
    assert_in_range(s.n, LENGTH, LENGTH + SPARE);
    assert_in_range(cycles(&s), HZ - 2, HZ + 2);
    assert_int_equal(mkdir(in_folder("noises"), 0700), 0);
    write_bytes("noises/a.mp3", bytes, size);
    assert_ok(
        bm_sound_folder_list(&noises, in_folder("noises"), "noise", 8000));
    assert_int_equal(noises.n, 1);
    assert_true(near(noises.files[0].seconds, (double)s.n / RATE, 1e-12));
    bm_sound_folder_free(&noises);
    assert_digests_tell_folders_apart(bytes, size);
    bm_sound_free(&s);
    free(bytes);
}

/* Silent frames: all bytes behind the 4 of their header are zero. Sizes are 144
 * times (MPEG-1) or 72 times bits over samples, rounded down, and one more byte
 * with padding. The first frame may not be cut: without one it is no MP3. */
static void test_mp3_without_a_header_may_only_end_between_frames(void **state)
{
    enum { FRAMES = 6, LARGEST = 2000 };
    static const struct {
        unsigned char head[4];
        long rate;
        size_t size, samples;
    } kinds[] = {
        {{0xff, 0xfb, 0x90, 0xc0}, 44100, 417, 1152}, /* 128 kbit/s */
        {{0xff, 0xfb, 0x92, 0xc0}, 44100, 418, 1152}, /* .. with padding */
        {{0xff, 0xfb, 0xe4, 0xc0}, 48000, 960, 1152}, /* 320 kbit/s */
        {{0xff, 0xfb, 0x18, 0xc0}, 32000, 144, 1152}, /* 32 kbit/s */
        {{0xff, 0xf3, 0x80, 0xc0}, 22050, 208, 576},  /* MPEG-2, 64 kbit/s */
        {{0xff, 0xf3, 0x48, 0xc0}, 16000, 144, 576},  /* .. 32 kbit/s */
        {{0xff, 0xe3, 0x18, 0xc0}, 8000, 72, 576},    /* MPEG-2.5, 8 kbit/s */
    };
    static const char tag[128] = {'T', 'A', 'G'};
    static char all[FRAMES * LARGEST + sizeof tag];

    (void)state;
    if (!write_lossy(2))
        skip();
    FOR_EACH (k, kinds) {
        size_t size = kinds[k].size, end = FRAMES * size;
        bm_sound s = {0};

        memset(all, 0, sizeof all);
        for (size_t i = 0; i < FRAMES; i++)
            memcpy(all + i * size, kinds[k].head, 4);
        memcpy(all + end, tag, sizeof tag);
        for (size_t i = 0; i < 3; i++) { /* complete, tagged, a frame less */
            write_bytes("b.mp3", all,
                        end + (i == 1 ? sizeof tag : 0) - (i == 2 ? size : 0));
            s = read_whole("b.mp3");
            assert_int_equal(s.rate, kinds[k].rate);
            assert_int_equal(s.n, (FRAMES - (i == 2)) * kinds[k].samples);
            bm_sound_free(&s);
        }
        for (size_t n = 1; n < size; n += n < 5 || n + 5 > size ? 1 : 13) {
            write_bytes("b.mp3", all, end - n);
            assert_truncated("b.mp3");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_length_and_tone_are_those_that_were_written),
        cmocka_unit_test(test_excerpts_are_parts_of_the_whole),
        cmocka_unit_test(test_excerpts_go_on_from_the_last_one),
        cmocka_unit_test(test_truncated_recordings_are_problems),
        cmocka_unit_test(test_recordings_without_the_last_byte_are_truncated),
        cmocka_unit_test(test_mp3_with_tags_is_complete),
        cmocka_unit_test(test_joined_recordings_are_problems),
        cmocka_unit_test(test_mp3_without_a_header_is_read_to_its_end),
        cmocka_unit_test(test_mp3_without_a_header_may_only_end_between_frames),
    };

    return cmocka_run_group_tests_name("lossy sound", tests, folder_make,
                                       folder_remove);
}
