#include "core/file/file_kind.h"

#include "core/text/printable.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The start of a file. The bytes after n are 0. */
typedef struct head {
    unsigned char bytes[4097];
    size_t n;
    uint64_t size; /* of the file */
} head;

static const char sounds[] =
    "bmuf decode reads such files, bmuf pack --audio a manifest that lists "
    "them";
static const char images[] =
    "bmuf decode reads such files, bmuf pack --images a manifest that lists "
    "them";
static const char archives[] = "unpack it first";
static const char wide[] =
    "make UTF-8 of it: iconv -f UTF-16 -t UTF-8 FILE > NEW";
static const char features[] =
    "bmuf decode reads such files, bmuf pack --features a manifest that lists "
    "them";
static const char kaldi[] =
    "bmuf pack --kaldi takes the data directory that it belongs to, other "
    "options take manifests";
static const char lines[] =
    "bmuf pack reads manifests: JSON lines such as {\"id\": \"u1\", \"audio\": "
    "\"u1.wav\", \"text\": \"one two\"}, or a table with a header such as "
    "id<TAB>audio<TAB>text";

const char bm_kind_hdf5[] = "an HDF5 file";
const char bm_kind_gzip[] = "a gzip file";
const char bm_kind_npy[] = "a NumPy array";

/* Files that begin with these bytes, at offset `at`. */
static const struct magic {
    const char *bytes;
    size_t n, at;
    const char *kind, *use;
} magics[] = {
    {"\x89PNG\r\n\x1a\n", 8, 0, "a PNG image", images},
    {"ftyp", 4, 4, "an MP4 or M4A file",
     "make WAV of it: ffmpeg -i FILE FILE.wav"},
    {"\xff\xfe", 2, 0, "a text in UTF-16", wide},
    {"\xfe\xff", 2, 0, "a text in UTF-16", wide},
    {"\x89HDF\r\n\x1a\n", 8, 0, bm_kind_hdf5,
     "shards are read by bmuf info, check, train, eval and decode, "
     "files of RETURNN by bmuf pack --returnn"},
    {"fLaC", 4, 0, "a FLAC recording", sounds},
    {"OggS", 4, 0, "an Ogg recording", sounds},
    {"NIST_1A", 7, 0, "a NIST SPHERE recording", sounds},
    {".snd", 4, 0, "an AU recording", sounds},
    {"ID3", 3, 0, "an MP3 recording", sounds}, /* or is_mp3 */
    {"\x93NUMPY", 6, 0, bm_kind_npy, features},
    {"\xff\xd8\xff", 3, 0, "a JPEG image", images},
    {"II*\0", 4, 0, "a TIFF image", images},
    {"MM\0*", 4, 0, "a TIFF image", images},
    {"II+\0", 4, 0, "a TIFF image", images}, /* BigTIFF */
    {"MM\0+", 4, 0, "a TIFF image", images},
    {"\x1f\x8b", 2, 0, bm_kind_gzip, archives},
    {"BZh", 3, 0, "a bzip2 file", archives},
    {"\xfd"
     "7zXZ\0",
     6, 0, "an xz file", archives},
    {"\x28\xb5\x2f\xfd", 4, 0, "a zstd file", archives},
    {"ustar", 5, 257, "a tar archive", archives},
    {"%PDF", 4, 0, "a PDF document", "give a text"},
    {"#!", 2, 0, "a script", "run it by itself"},
    {"bmuf-lm\n", 8, 0, "a compact language model",
     "bmuf lm describes it, bmuf decode --lm takes it"},
    {"\x7f"
     "ELF",
     4, 0, "a program", "give a text"},
    {"SQLite format 3", 15, 0, "an SQLite database", "give a text"},
};

/* Kinds that take more than a look at some bytes. */
static const char mp3[] = "an MP3 recording";
static const char wav[] = "a WAV recording";
static const char aiff[] = "an AIFF recording";
static const char pbm[] = "a PBM image";
static const char pgm[] = "a PGM image";
static const char ppm[] = "a PPM image";
const char bm_kind_npz[] = "a NumPy archive (.npz)";
static const char zip[] = "a zip archive";
const char bm_kind_safetensors[] = "a safetensors file";
const char bm_kind_ark[] = "a Kaldi archive";
const char bm_kind_binary[] = "a binary file";
const char bm_kind_json[] = "JSON";
static const char json_list[] = "a JSON list";
const char bm_kind_scp[] = "a Kaldi scp file";
const char bm_kind_configuration[] = "a configuration";
const char bm_kind_xml[] = "XML";
const char bm_kind_text[] = "a text";

static const struct use {
    const char *kind, *use;
} uses[] = {
    {wav, sounds},
    {mp3, sounds},
    {aiff, sounds},
    {pbm, images},
    {pgm, images},
    {ppm, images},
    {bm_kind_npz,
     "bmuf eval --dump writes it for NumPy, bmuf pack --features takes a "
     "manifest of its arrays"},
    {zip, archives},
    {bm_kind_safetensors, "bmuf eval, decode and info take models"},
    {bm_kind_ark, kaldi},
    {bm_kind_binary, "give a text"},
    {bm_kind_json, "bmuf pack takes manifests"},
    {json_list, "bmuf pack takes manifests, with one object a line and no "
                "brackets around them"},
    {bm_kind_scp, kaldi},
    {bm_kind_configuration, "bmuf train and explain take it"},
    {bm_kind_xml, lines},
    {bm_kind_text, lines},
};

/* A pipe without a writer does not block. */
static bool read_head(const char *path, head *h)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    ssize_t n = 0;

    memset(h, 0, sizeof *h);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        n = read(fd, h->bytes, sizeof h->bytes - 1);
        h->size = (uint64_t)info.st_size;
    }
    close(fd);
    h->n = n > 0 ? (size_t)n : 0;
    return h->n > 0;
}

static bool has(const head *h, size_t at, const char *bytes, size_t n)
{
    return at + n <= h->n && memcmp(h->bytes + at, bytes, n) == 0;
}

/* An 8-byte length n, and n bytes of JSON. */
static bool is_safetensors(const head *h)
{
    uint64_t length = 0;

    for (size_t i = 8; i-- > 0;)
        length = length << 8 | h->bytes[i];
    return h->n > 9 && h->bytes[8] == '{' && h->size >= 8 &&
           length <= h->size - 8;
}

/* The name of the first file of the archive, after its header of 30 bytes. */
static const char *kind_of_zip(const head *h)
{
    size_t length = h->bytes[26] | (size_t)h->bytes[27] << 8;

    return length >= 4 && has(h, 30 + length - 4, ".npy", 4) ? bm_kind_npz
                                                             : zip;
}

/* Whether there are control characters that no text has. */
static bool is_binary(const head *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->bytes[i] < '\a' || (h->bytes[i] > '\r' && h->bytes[i] < 033))
            return true;
    return false;
}

/* "id \0B": a name, a blank, and the mark of binary data. */
static bool is_ark(const head *h)
{
    const unsigned char *blank = memchr(h->bytes, ' ', h->n);

    return blank != NULL && has(h, (size_t)(blank - h->bytes), " \0B", 3);
}

/* The first frame of MPEG audio, layers II and III: 11 bits that are set, and no
 * invalid version, bit rate or sampling rate. UTF-16 begins as layer I does. */
static bool is_mp3(const head *h)
{
    unsigned rate = h->bytes[2] >> 4, layer = h->bytes[1] >> 1 & 3;

    return h->n > 4 && h->bytes[0] == 0xff && h->bytes[1] >> 5 == 7 &&
           (h->bytes[1] >> 3 & 3) != 1 && (layer == 1 || layer == 2) &&
           rate > 0 && rate < 15 && (h->bytes[2] >> 2 & 3) != 3;
}

static const char blanks[] = " \t\r\n\v\f";

static const char *behind_comments(const char *at)
{
    at += strspn(at, blanks);
    while (*at == '#') {
        at += strcspn(at, "\n");
        at += strspn(at, blanks);
    }
    return at;
}

/* A portable map, NULL: none. "P1" to "P6" may also begin a list of names, so the
 * numbers of the header are looked at, and in P1 to P3, which are texts, all
 * numbers. */
static const char *kind_of_map(const head *h)
{
    static const char *const kinds[] = {pbm, pgm, ppm};
    const char *at = (const char *)h->bytes;
    int i = at[0] == 'P' ? at[1] - '1' : -1, numbers = i % 3 == 0 ? 2 : 3;
    bool is_text = i < 3;

    if (i < 0 || i > 5 || strspn(at + 2, blanks) == 0)
        return NULL;
    at = behind_comments(at + 2);
    for (int n = 0; n < numbers || (is_text && *at != '\0'); n++) {
        size_t digits = strspn(at, "0123456789");

        if (digits == 0 || (n < numbers && strspn(at + digits, blanks) == 0))
            return NULL;
        at = behind_comments(at + digits);
    }
    return kinds[i % 3];
}

const char *bm_file_kind(const char *path)
{
    head h;
    const char *kind = NULL;

    if (!read_head(path, &h))
        return NULL;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (has(&h, magics[i].at, magics[i].bytes, magics[i].n))
            return magics[i].kind;
    if (is_mp3(&h))
        return mp3;
    if (h.bytes[0] == 'R' && has(&h, 8, "WAVE", 4)) /* RIFF, RIFX, RF64 */
        return wav;
    if (has(&h, 0, "FORM", 4) && has(&h, 8, "AIF", 3))
        return aiff;
    if (has(&h, 0, "PK\3\4", 4))
        return kind_of_zip(&h);
    if (is_safetensors(&h))
        return bm_kind_safetensors;
    if (is_ark(&h))
        return bm_kind_ark;
    if ((kind = kind_of_map(&h)) != NULL)
        return kind;
    return is_binary(&h) ? bm_kind_binary : NULL;
}

/* "id path", "id path:12345" or "id command |", as Kaldi's wav.scp. */
static bool is_scp(const char *line)
{
    size_t id = strcspn(line, " \t"), gap = strspn(line + id, " \t");
    const char *rest = line + id + gap, *dot = strrchr(rest, '.');
    size_t n = strlen(rest);
    bool one = strcspn(rest, " \t") == n;

    return id > 0 && gap > 0 && n > 0 &&
           (rest[n - 1] == '|' || (one && strchr(rest, '/') != NULL) ||
            (one && dot != NULL && isalnum((unsigned char)dot[1])));
}

/* "key = value" */
static bool is_setting(const char *line)
{
    size_t key = strspn(line, "abcdefghijklmnopqrstuvwxyz_.");

    return key > 0 && line[key + strspn(line + key, " \t")] == '=';
}

/* "[data", "[data]": the name of a section, if its bracket was forgotten, too. */
static bool is_heading(const char *line)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_ \t";
    const char *close = strchr(line, ']');

    if (line[0] != '[')
        return false;
    if (close != NULL)
        return strcspn(line, "{\"") > (size_t)(close - line);
    return islower((unsigned char)line[1]) &&
           line[1 + strspn(line + 1, letters)] == '\0';
}

/* The first line with more than blanks and comments, without its end. */
static char *first_line(head *h)
{
    char *line = (char *)h->bytes;

    line += bm_utf8_mark(line);
    line += strspn(line, " \t\r\n");
    while (*line == '#' || *line == ';') {
        line += strcspn(line, "\n");
        line += strspn(line, " \t\r\n");
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line;
}

const char *bm_text_kind(const char *path)
{
    head h;
    const char *line = NULL;

    if (!read_head(path, &h) || is_binary(&h))
        return NULL;
    line = first_line(&h);
    if (line[0] == '{')
        return bm_kind_json;
    if (line[0] == '<')
        return bm_kind_xml;
    if (line[0] == '[')
        return is_heading(line) ? bm_kind_configuration : json_list;
    if (is_setting(line))
        return bm_kind_configuration;
    if (is_scp(line))
        return bm_kind_scp;
    return line[0] != '\0' ? bm_kind_text : NULL;
}

const char *bm_file_kind_use(const char *kind)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (strcmp(magics[i].kind, kind) == 0)
            return magics[i].use;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcmp(uses[i].kind, kind) == 0)
            return uses[i].use;
    return "give a text";
}
