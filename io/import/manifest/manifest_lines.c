/* manifest_lines.c - line images as other programs keep them: the lines of
 * io/import/lines/line_source.h as rows. */
#include "io/import/manifest/manifest_parts.h"

#include "core/text/printable.h"
#include "io/import/lines/line_source.h"

#include <string.h>

static bm_status take(void *to, const bm_found_line *l)
{
    bm_manifest *m = to;
    size_t valid = l->text != NULL ? bm_utf8_length(l->text) : 0;
    bm_status status = BM_OK;

    m->file = l->file;
    if (l->text != NULL && valid < strlen(l->text))
        bm_manifest_fault(m, l->line,
                          "byte %zu of the text of \"%.60s\" is not UTF-8",
                          valid + 1, l->id);
    else
        status = bm_manifest_add(m, l->line,
                                 &(bm_manifest_fields){.id = l->id,
                                                       .path = l->image,
                                                       .shape = l->shape,
                                                       .text = l->text});
    m->file = m->path;
    return status;
}

static void note(void *to, const char *file, size_t line, const char *text)
{
    bm_manifest *m = to;

    m->file = file;
    bm_manifest_fault(m, line, "%s", text);
    m->file = m->path;
}

static bm_status pass(void *to, bm_status status)
{
    return bm_manifest_pass(to, status);
}

bm_status bm_manifest_lines(bm_manifest *m, const char *image_dir)
{
    const bm_line_taker taker = {take, note, m, pass};

    m->folder = 0; /* paths are complete */
    if (image_dir[0] != '\0')
        m->folders = "give the folder of the images with --image-dir";
    m->file = m->path;
    BM_TRY(bm_line_source_read(m->path, image_dir, &taker));
    if (m->n == 0 && m->faults.n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no lines of text", m->path);
    return BM_OK;
}
