#include "io/import/lines/line_source.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "io/import/lines/line_source_parts.h"
#include "io/import/lines/page_xml.h"

static bool is_xml(const char *path)
{
    return bm_text_kind(path) == bm_kind_xml;
}

bool bm_line_source_is(const char *path, const char *image_dir)
{
    return image_dir[0] != '\0' || bm_is_folder(path) || is_xml(path) ||
           bm_line_paths_is(path);
}

bm_status bm_line_source_read(const char *path, const char *image_dir,
                              const bm_line_taker *taker)
{
    if (image_dir[0] != '\0')
        return bm_line_list_read(path, image_dir, taker);
    if (bm_is_folder(path))
        return bm_line_folder_read(path, taker);
    return is_xml(path) ? bm_page_read(path, taker, NULL)
                        : bm_line_paths_read(path, taker);
}
