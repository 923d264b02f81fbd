/*
 * page.h - a report as one HTML file: sections of words, figures and tables. It
 * needs no script and nothing from elsewhere, follows the reader's choice of
 * light or dark, fits a telephone and prints.
 *
 *     bm_report_page_head(f, "Report of run/1");
 *     bm_report_page_section(f, "Results");
 *     bm_report_page_words(f, "%zu runs, the best of them first.", n);
 *     bm_report_table_begin(f, head, 2);
 *     bm_report_table_row(f, cells, 2);                // for each row
 *     bm_report_table_end(f);
 *     bm_report_page_figure(f, &plot, "Lower is better.");
 *     bm_report_page_section_end(f);
 *     bm_report_page_foot(f);
 *
 * All texts are escaped. Figures of a section stand side by side where there is
 * room. A caption says in a sentence how to read its figure. Nothing here
 * fails: errors of the stream show when it is closed.
 */
#ifndef BM_CLI_REPORT_PAGE_PAGE_H
#define BM_CLI_REPORT_PAGE_PAGE_H

#include "cli/plot/plot.h"

void bm_report_page_head(FILE *f, const char *title);
void bm_report_page_foot(FILE *f);

void bm_report_page_section(FILE *f, const char *heading);
void bm_report_page_section_end(FILE *f);

/* A paragraph. */
void bm_report_page_words(FILE *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void bm_report_page_figure(FILE *f, const bm_plot *plot, const char *caption);
void bm_report_page_parallel(FILE *f, const bm_parallel *plot,
                             const char *caption);

/* Columns after the first hold numbers: they are aligned on the right. */
void bm_report_table_begin(FILE *f, const char *const *head, size_t columns);
void bm_report_table_row(FILE *f, const char *const *cells, size_t columns);
void bm_report_table_end(FILE *f);

#endif
