#include "cli/report/page/page.h"

#include "cli/plot/markup.h"

#include <stdarg.h>
#include <stdlib.h>

static const char layout[] =
    ":root{color-scheme:light dark}\n"
    "body{margin:0 auto;max-width:1240px;padding:16px;background:#fff;"
    "color:#222;font:16px/1.5 system-ui,sans-serif}\n"
    "h1,h2,h3{line-height:1.25;overflow-wrap:anywhere}"
    "h2{margin:32px 0 0;border-bottom:1px solid #ccc}h3{margin:8px 0 0}\n"
    "section{display:grid;gap:12px 32px;"
    "grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr))}\n"
    "section>*{min-width:0}h2,h3,p,.table,.side,.example{grid-column:1/-1}\n"
    "p{margin:0;max-width:75ch;overflow-wrap:anywhere}\n"
    "figure{margin:0;break-inside:avoid}svg.plot{width:100%;height:auto}\n"
    "figcaption{font-size:14px;color:#555}\n"
    ".table{overflow-x:auto}table{border-collapse:collapse;font-size:14px}\n"
    "th,td{padding:3px 12px 3px 0;text-align:right;vertical-align:top;"
    "border-bottom:1px solid #ddd;white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    ".side{display:flex;flex-wrap:wrap;gap:12px 48px;align-items:start}\n"
    ".example{break-inside:avoid;font-size:15px}"
    ".example small{color:#555;overflow-wrap:anywhere}\n"
    ".pairs{display:flex;flex-wrap:wrap;gap:4px 1px}"
    ".words.pairs{column-gap:8px}\n"
    ".pair{display:grid;min-width:1ch;max-width:100%;padding:0 1px;"
    "text-align:center;overflow-wrap:anywhere;line-height:1.3;"
    "border-radius:3px}.key{display:inline-block;padding:0 6px}\n"
    ".sub{background:#f7d9a0;color:#222}.del{background:#b9dcf2;color:#222}"
    ".ins{background:#efcfe1;color:#222}\n"
    "@media screen and (prefers-color-scheme:dark){"
    "body{background:#16181b;color:#ddd}"
    "h2{border-color:#444}th,td{border-color:#3a3f44}"
    "figcaption,.example small{color:#aaa}}\n"
    "@media print{body{max-width:none;font-size:11pt}"
    ".table{overflow-x:visible}th,td{white-space:normal}}\n";

void bm_report_page_head(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width,"
          "initial-scale=1'>\n<title>",
          f);
    bm_markup(f, title);
    fputs("</title>\n<style>\n", f);
    fputs(layout, f);
    bm_plot_style(f);
    fputs("</style>\n</head>\n<body>\n<h1>", f);
    bm_markup(f, title);
    fputs("</h1>\n", f);
}

void bm_report_page_foot(FILE *f)
{
    fputs("</body>\n</html>\n", f);
}

void bm_report_page_section(FILE *f, const char *heading)
{
    fputs("<section>\n<h2>", f);
    bm_markup(f, heading);
    fputs("</h2>\n", f);
}

void bm_report_page_section_end(FILE *f)
{
    fputs("</section>\n", f);
}

void bm_report_page_words(FILE *f, const char *format, ...)
{
    char *text = NULL;
    size_t room = 0;
    va_list arguments;

    va_start(arguments, format);
    room = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
    va_end(arguments);
    text = malloc(room);
    va_start(arguments, format);
    if (text != NULL)
        vsnprintf(text, room, format, arguments);
    va_end(arguments);
    fputs("<p>", f);
    bm_markup(f, text != NULL ? text : "(no memory for this paragraph)");
    fputs("</p>\n", f);
    free(text);
}

static void caption(FILE *f, const char *text)
{
    fputs("<figcaption>", f);
    bm_markup(f, text);
    fputs("</figcaption>\n</figure>\n", f);
}

void bm_report_page_figure(FILE *f, const bm_plot *plot, const char *words)
{
    fputs("<figure>\n", f);
    bm_plot_write(plot, f);
    caption(f, words);
}

void bm_report_page_parallel(FILE *f, const bm_parallel *plot,
                             const char *words)
{
    fputs("<figure>\n", f);
    bm_parallel_write(plot, f);
    caption(f, words);
}

static void row(FILE *f, const char *tag, const char *const *cells, size_t n)
{
    fputs("<tr>", f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "<%s>", tag);
        bm_markup(f, cells[i]);
        fprintf(f, "</%s>", tag);
    }
    fputs("</tr>\n", f);
}

void bm_report_table_begin(FILE *f, const char *const *head, size_t columns)
{
    fputs("<div class='table'><table>\n", f);
    row(f, "th", head, columns);
}

void bm_report_table_row(FILE *f, const char *const *cells, size_t columns)
{
    row(f, "td", cells, columns);
}

void bm_report_table_end(FILE *f)
{
    fputs("</table></div>\n", f);
}
