/*
 * page_xml.h - the lines of a page in PAGE XML or ALTO: where each is on the
 * image, and what is written there.
 */
#ifndef BM_IO_IMPORT_LINES_PAGE_XML_H
#define BM_IO_IMPORT_LINES_PAGE_XML_H

#include "io/import/lines/line_taker.h"

/*
 * Gives all lines of the file in reading order: as the page's ReadingOrder lists
 * its regions, then as the file has them. A line's id is made of the name of the
 * file and the line's own: "page1-l3". Image files are looked for beside the
 * file and one folder up. Fails with BM_ERR_FORMAT, with line and reason, if it
 * is not such XML, as bm_file_read does, with BM_ERR_MEMORY, and as `take`.
 * XML with another root is counted in *others instead, unless that is NULL.
 */
BM_CHECKED bm_status bm_page_read(const char *path, const bm_line_taker *taker,
                                  size_t *others);

#endif
