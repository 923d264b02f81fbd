/*
 * line_folder.c - a folder with line images and their texts, NAME.png and
 * NAME.gt.txt, or with pages in XML.
 */
#include "core/file/path.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/line_source_parts.h"

#include "core/file/file.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/import/lines/page_xml.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char truth[] = ".gt.txt";

static int is_listed(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (bm_ends_with(entry->d_name, truth) ||
                                       bm_ends_with(entry->d_name, ".xml"));
}

static int is_image(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && bm_is_image_name(entry->d_name);
}

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

/* Without the mark of some editors, ends of lines to blanks. */
static char *tidy(char *text)
{
    char *end = NULL;

    text += bm_utf8_mark(text);
    end = text + strlen(text);
    while (end > text && (end[-1] == '\n' || end[-1] == '\r'))
        *--end = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return text;
}

void bm_line_text_id(const char *file, char id[NAME_MAX + 1])
{
    const char *name = file + bm_path_folder_length(file);

    snprintf(id, NAME_MAX + 1, "%.*s", (int)(strlen(name) - strlen(truth)),
             name);
    for (char *c = id; *c != '\0'; c++)
        *c = *c == ' ' ? '_' : *c;
}

bm_status bm_line_text_read(const char *file, const char *image,
                            const bm_line_taker *taker)
{
    char id[NAME_MAX + 1], *text = NULL;
    size_t size = 0;
    bm_status status = bm_file_read(file, BM_MOST_TEXT_BYTES, &text, &size);

    if (status != BM_OK)
        return taker->pass(taker->to, status);
    bm_line_text_id(file, id);
    if (strlen(text) != size)
        taker->fault(taker->to, file, 1, "a zero byte; it should be a text");
    else
        status = taker->take(taker->to, &(bm_found_line){.id = id,
                                                         .image = image,
                                                         .text = tidy(text),
                                                         .file = file,
                                                         .line = 1});
    free(text);
    return status;
}

static bm_status read_line(const char *folder, const char *name,
                           const bm_line_taker *taker)
{
    char path[PATH_MAX], image[PATH_MAX], id[NAME_MAX + 1];

    snprintf(id, sizeof id, "%.*s", (int)(strlen(name) - strlen(truth)), name);
    BM_TRY(bm_path_join(path, folder, name));
    if (!bm_find_image(image, folder, id))
        return BM_FAIL(BM_ERR_FORMAT, "%s/%s: its path is too long", folder,
                       name);
    return bm_line_text_read(path, image, taker);
}

static bm_status read_page(const char *folder, const char *name,
                           const bm_line_taker *taker, size_t *others)
{
    char path[PATH_MAX];

    BM_TRY(bm_path_join(path, folder, name));
    return taker->pass(taker->to, bm_page_read(path, taker, others));
}

/* NAME.gt.txt for NAME.bin.png or, where NAME has a point, NAME.bin.gt.txt. */
static bool has_text(const char *folder, const char *image)
{
    size_t whole = strlen(image) - bm_image_ending(image);
    size_t last = (size_t)(strrchr(image, '.') - image);
    char name[NAME_MAX + sizeof truth], path[PATH_MAX];

    for (size_t n = whole;; n = last) {
        snprintf(name, sizeof name, "%.*s%s", (int)n, image, truth);
        if (bm_path_join(path, folder, name) == BM_OK &&
            access(path, F_OK) == 0)
            return true;
        if (n == last)
            return false;
    }
}

static void warn_of_images(const char *folder)
{
    struct dirent **images = NULL;
    const char *first = NULL;
    int n = scandir(folder, &images, is_image, compare), bare = 0;

    for (int i = 0; i < n; i++)
        if (!has_text(folder, images[i]->d_name)) {
            bare++;
            first = first != NULL ? first : images[i]->d_name;
        }
    if (bare > 0)
        bm_log(BM_WARNING,
               "%s: %d of %s %s no text (NAME%s) and %s not packed, e.g. "
               "%s",
               folder, bare, bm_count_noun(n, "image").text,
               bare > 1 ? "have" : "has", truth, bare > 1 ? "were" : "was",
               first);
    if (n >= 0)
        free_entries(images, n);
}

/* Programs put lists of the pages (METS) beside them. */
static bm_status report_others(const char *folder, size_t others, size_t files)
{
    if (others == files)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: none of its XML files is PAGE XML or ALTO, with the "
            "root <PcGts> or <alto>; give the folder of the pages, such as "
            "page/ of an export of Transkribus",
            folder);
    if (others > 0)
        bm_log(
            BM_WARNING,
            "%s: %zu of %zu XML files are neither PAGE XML nor ALTO and were "
            "ignored",
            folder, others, files);
    return BM_OK;
}

/* XML beside texts is taken for the pages that the lines were cut from. */
bm_status bm_line_folder_read(const char *folder, const bm_line_taker *taker)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_listed, compare);
    size_t texts = 0, others = 0;
    bm_status status = BM_OK;

    if (n < 0)
        return BM_FAIL(errno == ENOMEM ? BM_ERR_MEMORY : BM_ERR_MISSING,
                       "cannot read the folder %s: %s", folder,
                       strerror(errno));
    for (int i = 0; i < n; i++)
        texts += bm_ends_with(entries[i]->d_name, truth);
    if (n == 0)
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s has neither NAME%s beside images of lines, nor "
                     "pages in XML; give the folder that has such files "
                     "itself, or a manifest",
                     folder, truth);
    for (int i = 0; i < n && status == BM_OK; i++)
        if (texts == 0)
            status = read_page(folder, entries[i]->d_name, taker, &others);
        else if (bm_ends_with(entries[i]->d_name, truth))
            status = read_line(folder, entries[i]->d_name, taker);
    if (status == BM_OK && texts > 0) {
        warn_of_images(folder);
        if (texts < (size_t)n)
            bm_log(
                BM_WARNING,
                "%s: %s not read, because there are lines with a text "
                "(NAME%s); pack a list of their paths to read them",
                folder,
                bm_count_noun((long long)((size_t)n - texts), "XML file").text,
                truth);
    } else if (status == BM_OK)
        status = report_others(folder, others, (size_t)n);
done:
    free_entries(entries, n);
    return status;
}
