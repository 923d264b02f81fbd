/* style.c - colours and texts of figures. */
#include "cli/plot/markup.h"
#include "cli/plot/plot_parts.h"

#include <math.h>

/* Okabe and Ito's colours; on dark paper others of them are the readable
 * ones. */
static const char *const on_light[BM_COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#222222", "#888888"};
static const char *const on_dark[BM_COLOURS] = {"#56b4e9", "#d55e00", "#009e73",
                                                "#cc79a7", "#e69f00", "#f0e442",
                                                "#eeeeee", "#999999"};

static void rules(FILE *f, const char *const *colour, const char *ink,
                  const char *axis, const char *grid, const char *paper)
{
    fprintf(f,
            ".plot text{fill:%s}.plot .axis{stroke:%s}.plot .grid{stroke:%s}"
            ".plot .paper{fill:%s}.plot .bar,.plot circle,.plot .halo text"
            "{stroke:%s}\n",
            ink, axis, grid, paper, paper);
    for (int i = 0; i < BM_COLOURS; i++)
        fprintf(f, ".plot .l%d{stroke:%s}.plot .f%d{fill:%s}%s", i, colour[i],
                i, colour[i], i + 1 < BM_COLOURS ? "" : "\n");
}

void bm_plot_style(FILE *f)
{
    fputs(".plot text{font:13px system-ui,sans-serif}"
          ".plot .title text{font-weight:600}"
          ".plot path{fill:none;stroke-width:2;stroke-linejoin:round;"
          "stroke-linecap:round}"
          ".plot .band{stroke:none;fill-opacity:.22}.plot .axis,.plot .grid"
          "{stroke-width:1}.plot .dash{stroke-dasharray:5 5}.plot "
          ".pale{stroke-width:5;stroke-opacity:.45}"
          ".plot .halo text{paint-order:stroke;stroke-width:4px}\n",
          f);
    rules(f, on_light, "#222", "#888", "#e2e2e2", "#fff");
    fputs("@media screen and (prefers-color-scheme:dark){\n", f);
    rules(f, on_dark, "#ddd", "#888", "#3a3f44", "#16181b");
    fputs(".plot .seq{filter:brightness(1.7)}}\n", f);
}

const char *bm_plot_class(char kind, size_t colour, char out[8])
{
    snprintf(out, 8, "%c%d", kind, (int)(colour % BM_COLOURS));
    return out;
}

double bm_plot_text_width(const char *text)
{
    return 7.8 * (double)bm_markup_length(text);
}

void bm_plot_text(FILE *f, double x, double y, const char *anchor, double room,
                  const char *text)
{
    size_t most = (size_t)fmax(room / 7.8, 4), n = 0;
    char cut[256];

    fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor);
    if (bm_plot_text_width(text) <= room) {
        bm_markup(f, text);
    } else {
        fputs("<title>", f);
        bm_markup(f, text);
        fputs("</title>", f);
        for (const char *c = text; *c != '\0' && n + 5 < sizeof cut; c++) {
            if (((unsigned char)*c & 0xc0) != 0x80 && most-- <= 3)
                break;
            cut[n++] = *c;
        }
        snprintf(cut + n, sizeof cut - n, "...");
        bm_markup(f, cut);
    }
    fputs("</text>\n", f);
}

void bm_plot_title(FILE *f, const char *text)
{
    if (text == NULL)
        return;
    fputs("<g class='title'>", f);
    bm_plot_text(f, BM_PLOT_GAP, 17, "start", BM_PLOT_WIDTH - 2 * BM_PLOT_GAP,
                 text);
    fputs("</g>\n", f);
}

/* Nine colours of matplotlib's viridis (CC0), linear between them. */
const char *bm_plot_sequential(double t, char out[8])
{
    static const unsigned char map[][3] = {
        {0x44, 0x01, 0x54}, {0x47, 0x2d, 0x7b}, {0x3b, 0x52, 0x8b},
        {0x2c, 0x72, 0x8e}, {0x21, 0x91, 0x8c}, {0x28, 0xae, 0x80},
        {0x5e, 0xc9, 0x62}, {0xad, 0xdc, 0x30}, {0xfd, 0xe7, 0x25}};
    enum { LAST = sizeof map / sizeof map[0] - 1 };
    double at = fmin(fmax(t, 0), 1) * LAST;
    int k = at >= LAST ? LAST - 1 : (int)at;
    unsigned rgb[3];

    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned)lround(map[k][c] +
                                  (at - k) * (map[k + 1][c] - map[k][c])) &
                 0xff;
    snprintf(out, 8, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    return out;
}

void bm_plot_colour_key(FILE *f, const bm_plot_axis *z, double x, double y)
{
    enum { STEPS = 24, STEP = 6 };
    char text[32], colour[8];
    double end = 0;

    bm_plot_axis_number(z, z->least, text);
    bm_plot_text(f, x, y + 11, "start", 100, text);
    x += bm_plot_text_width(text) + 6;
    fputs("<g class='seq'>", f);
    for (int i = 0; i < STEPS; i++)
        fprintf(f, "<rect x='%.1f' y='%.1f' width='%d' height='12' fill='%s'/>",
                x + STEP * i, y, STEP + 1,
                bm_plot_sequential((double)i / (STEPS - 1), colour));
    fputs("</g>", f);
    end = x + STEPS * STEP + 6;
    bm_plot_axis_number(z, z->most, text);
    bm_plot_text(f, end, y + 11, "start", 100, text);
    end += bm_plot_text_width(text) + 10;
    if (z->title != NULL)
        bm_plot_text(f, end, y + 11, "start", BM_PLOT_WIDTH - end, z->title);
}
