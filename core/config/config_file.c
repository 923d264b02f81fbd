/*
 * config_file.c - reads settings from an INI file, with inih, and writes them.
 * inih's buffer has 200 bytes, and a value may have more: inih gets each line
 * without its value.
 */
#include "core/config/config_parts.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/text/printable.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The file while inih reads it; inih's handler gets no line numbers. */
typedef struct source {
    FILE *file;
    const char *path;
    bm_config *config;
    int line;
    size_t settings; /* in sections, so far */
    bool open;       /* the last line was a setting, which can be continued */
    bool unread; /* the line is neither empty nor a comment, nor parsed yet */
    bool is_quoted;
    const char *value;              /* in `line` */
    char text[BM_LONGEST_LINE + 2]; /* the line, its end and a zero */
    bm_status status;
} source;

static const char *here(const source *s, char *text, size_t room)
{
    snprintf(text, room, "%s:%d", s->path, s->line);
    return text;
}

static void close_line(source *s)
{
    char where[512];

    if (s->unread)
        bm_fault_add(&s->config->faults, here(s, where, sizeof where),
                     "neither [section] nor key = value");
    s->unread = false;
}

/* Where the comment of a line begins; the line's end if there is none. */
static size_t find_comment(const char *text)
{
    size_t n = 0;

    for (; text[n] != '\0' && strchr("\r\n", text[n]) == NULL; n++)
        if ((text[n] == '#' || text[n] == ';') &&
            (n == 0 || strchr(" \t", text[n - 1]) != NULL))
            break;
    return n;
}

static void cut_comment(char *text)
{
    size_t n = find_comment(text);

    while (n > 0 && strchr(" \t", text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
}

/* The value of "key = value"; NULL: the line is another one. */
static char *find_value(char *line)
{
    char *text = line + strcspn(line, "=:");

    if (text[0] == '\0' || strchr("[#;", line[0]) != NULL)
        return NULL;
    text++;
    return text + strspn(text, " \t");
}

/* Ends the value after the opening quote, at the closing quote, which has nothing
 * but a comment after it. False: there is none. */
static bool unquote(char *value)
{
    for (char *end = value; *end != '\0'; end++) {
        size_t blanks = strspn(end + 1, " \t\r\n");

        if (*end != '"' ||
            (end[1 + blanks] != '\0' &&
             (blanks == 0 || strchr("#;", end[1 + blanks]) == NULL)))
            continue;
        *end = '\0';
        return true;
    }
    return false;
}

/* Appends a line to the value of the last setting. */
static void append(source *s, char *more)
{
    bm_entry *e = &s->config->entries[s->config->n - 1];
    size_t n = 0, length = strlen(e->value);
    char *grown = NULL;

    cut_comment(more);
    n = strlen(more);
    grown = realloc(e->value, length + n + 2);
    if (grown == NULL) {
        s->status = BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", s->path);
        return;
    }
    if (length > 0)
        grown[length++] = ' ';
    memcpy(grown + length, more, n + 1);
    e->value = grown;
}

/* An indented line without a setting of its own, below a setting. */
static bool continues(const source *s, const char *line, size_t indent)
{
    return s->open && s->status == BM_OK && indent > 0 &&
           strchr("\r\n;#[", line[0]) == NULL && strchr(line, '=') == NULL &&
           strstr(line, ": ") == NULL;
}

/* A line that fits; false at the end of the file. A longer one is a fault, and
 * empty. */
static bool get_line(source *s)
{
    char where[512];
    size_t length = 0;

    if (fgets(s->text, sizeof s->text, s->file) == NULL)
        return false;
    s->line++;
    length = strlen(s->text);
    if (feof(s->file) || (length > 0 && s->text[length - 1] == '\n'))
        return true;
    bm_fault_add(&s->config->faults, here(s, where, sizeof where),
                 "the line is longer than %d characters or not text",
                 BM_LONGEST_LINE);
    for (int c = 0; c != EOF && c != '\n';)
        c = fgetc(s->file);
    s->text[0] = '\0';
    return true;
}

/* Finds the value in s->text, or appends the line to the last one. Returns what
 * is left, without indentation. */
static const char *parse_line(source *s)
{
    char *text = s->text + (s->line == 1 ? bm_utf8_mark(s->text) : 0);
    size_t indent = strspn(text, " \t");
    char *line = text + indent, *value = find_value(line);
    char where[512];

    s->is_quoted = value != NULL && value[0] == '"';
    s->value = NULL;
    if (!s->is_quoted) {
        cut_comment(line);
        value = find_value(line);
    }
    if (continues(s, line, indent)) {
        append(s, line);
        return "";
    }
    if (s->is_quoted && !unquote(++value)) {
        bm_fault_add(&s->config->faults, here(s, where, sizeof where),
                     "the value begins with a double quote, but does not end "
                     "with one");
        return "";
    }
    s->unread = line[0] != '\0' && strchr("\r\n;#", line[0]) == NULL &&
                !(line[0] == '[' && strchr(line, ']') != NULL);
    s->value = value;
    return line;
}

/* inih's reader: like fgets, but counts lines and joins continued values. */
static char *read_line(char *line, int room, void *context)
{
    source *s = context;
    const char *rest = NULL;
    char where[512];
    size_t n = 0;

    close_line(s);
    if (!get_line(s))
        return NULL;
    rest = parse_line(s);
    n = s->value != NULL ? strcspn(rest, "=:") + 1 : strlen(rest);
    if (n >= (size_t)room) {
        bm_fault_add(&s->config->faults, here(s, where, sizeof where),
                     "the name is longer than %d characters", room - 2);
        s->unread = false;
        n = 0;
    }
    snprintf(line, (size_t)room, "%.*s", (int)n, rest);
    return line;
}

static int take(void *context, const char *section, const char *key,
                const char *empty)
{
    source *s = context;
    const bm_entry *before = bm_config_find(s->config, section, key);
    char where[512];

    (void)empty; /* s->value is the value */
    here(s, where, sizeof where);
    s->unread = false;
    s->open = false;
    if (section[0] == '\0')
        bm_fault_add(&s->config->faults, where,
                     "%s is set before the first [section]", key);
    else if (before != NULL)
        bm_fault_add(&s->config->faults, where,
                     "%s.%s is set twice; first in %s", section, key,
                     before->origin);
    else if (s->status == BM_OK)
        s->status = bm_config_add(s->config, section, key, s->value, where);
    s->settings += section[0] != '\0';
    s->open = !s->is_quoted && s->config->n > 0 &&
              bm_config_find(s->config, section, key) ==
                  &s->config->entries[s->config->n - 1];
    return 1;
}

/* What the file is instead of a configuration; NULL: it may be one. */
static const char *other_kind(const char *path)
{
    const char *kind = bm_file_kind(path);

    if (kind != NULL)
        return kind;
    kind = bm_text_kind(path);
    return kind == bm_kind_configuration || kind == bm_kind_text ? NULL : kind;
}

/* A file with more faults than settings is another text, of which each line would
 * be an error. `before`: faults of other files. */
static bm_status check_settings(const source *s, size_t before)
{
    size_t n = s->config->faults.n - before;

    if (s->status != BM_OK || n < 3 || n <= s->settings)
        return s->status;
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s is a text, not a configuration; lines that are neither "
                   "\"[section]\" nor \"key = value\" in a section: %zu, "
                   "settings: %zu. bmuf options lists what can be set",
                   s->path, n, s->settings);
}

/* Reads and closes the file. */
static bm_status read_stream(bm_config *config, const char *path, FILE *file)
{
    source s = {.path = path, .config = config, .file = file};
    size_t before = config->faults.n;

    free(config->path);
    config->path = strdup(path);
    if (config->path == NULL)
        s.status = BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    if (ini_parse_stream(read_line, &s, take, &s) == -2 && s.status == BM_OK)
        s.status = BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    if (ferror(s.file) && s.status == BM_OK)
        s.status =
            BM_FAIL(BM_ERR_IO, "%s cannot be read: %s", path, strerror(errno));
    close_line(&s);
    fclose(s.file);
    return check_settings(&s, before);
}

bm_status bm_config_read(bm_config *config, const char *path)
{
    const char *kind = other_kind(path);
    FILE *file = NULL;

    if (kind != NULL)
        return BM_FAIL(BM_ERR_CONFIG, "%s is %s, not a configuration; %s", path,
                       kind, bm_file_kind_use(kind));
    BM_TRY(bm_file_open_stream(&file, path));
    return read_stream(config, path, file);
}

bm_status bm_config_read_text(bm_config *config, const char *path,
                              const char *text)
{
    char *copy = strdup(text);
    FILE *file = NULL;
    bm_status status = BM_OK;

    if (copy != NULL && copy[0] != '\0')
        file = fmemopen(copy, strlen(copy), "r");
    if (file != NULL)
        status = read_stream(config, path, file);
    else if (text[0] != '\0')
        status = BM_FAIL(BM_ERR_MEMORY, "no memory to read the settings of %s",
                         path);
    free(copy);
    return status;
}

/* Would bm_config_read take this line for a continuation? */
static bool can_go_on(const char *text)
{
    return text[0] != '\0' && strchr("#;[\t", text[0]) == NULL &&
           strchr(text, '=') == NULL && strstr(text, ": ") == NULL;
}

bool bm_config_quoted(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && (find_comment(text) < n || strchr("\" \t", text[0]) ||
                     strchr(" \t", text[n - 1]));
}

/* Breaks a long value at blanks, into indented lines. */
static void write_value(const char *key, const char *text, FILE *file)
{
    enum { WIDE = 80 }; /* columns */
    size_t column = strlen(key) + 3;

    if (bm_config_quoted(text)) {
        fprintf(file, "%s = \"%s\"\n", key, text);
        return;
    }
    fprintf(file, "%s = ", key);
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        size_t blanks = strspn(text + n, " ");

        fprintf(file, "%.*s", (int)n, text);
        column += n;
        text += n + blanks;
        if (column > WIDE && blanks == 1 && text[-2] != '\t' &&
            can_go_on(text)) {
            fputs("\n    ", file);
            column = 4;
        } else if (*text != '\0') {
            fprintf(file, "%*s", (int)blanks, "");
            column += blanks;
        }
    }
    fputc('\n', file);
}

bm_status bm_config_write(const bm_config *config, const bm_section *sections,
                          FILE *file)
{
    for (const bm_section *s = sections; s->name != NULL; s++) {
        fprintf(file, "%s[%s]\n", s == sections ? "" : "\n", s->name);
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            const bm_entry *e = bm_config_find(config, s->name, o->key);
            const char *text = e != NULL ? e->value : o->fallback;
            if (text != NULL)
                write_value(o->key, text, file);
        }
    }
    if (fflush(file) != 0 || ferror(file))
        return BM_FAIL(BM_ERR_IO, "cannot write the configuration");
    return BM_OK;
}
