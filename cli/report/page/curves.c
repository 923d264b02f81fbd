/* curves.c - learning curves, and what the filter does. */
#include "cli/report/page/figure.h"
#include "cli/report/page/page.h"
#include "cli/report/page/sections.h"

#include <math.h>

/* ---- numbers of a run --------------------------------------------------- */

static double minutes_at(const bm_run_summary *s, size_t i)
{
    double seconds = 0;

    for (size_t k = 0; k <= i; k++)
        seconds += s->epochs[k].seconds;
    return seconds / 60;
}

static double dev_loss(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].dev_loss;
}

static double train_loss(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].loss;
}

/* Of the model or of the average of models (train.ema), as in the table of results. */
static double dev_error(const bm_run_summary *s, size_t i)
{
    return fmin(s->epochs[i].dev_ler, s->epochs[i].ema_ler);
}

static double train_error(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].error;
}

static double rate(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].rate;
}

static double g_norm(const bm_run_summary *s, size_t i)
{
    return s->rows[i].g_norm;
}

static double delta_norm(const bm_run_summary *s, size_t i)
{
    return s->rows[i].delta_norm;
}

static double cosine(const bm_run_summary *s, size_t i)
{
    return s->rows[i].cosine;
}

/* How far Delta goes along G, in lengths of G. */
static double gain(const bm_run_summary *s, size_t i)
{
    const bm_run_block *b = &s->rows[i];

    return b->g_norm > 0 ? b->delta_norm * b->cosine / b->g_norm : NAN;
}

/* zeta / (1 - eta) */
static double steady_gain(const bm_run_summary *s, size_t i)
{
    return s->rows[i].block_rate / (1 - s->rows[i].block_momentum);
}

/* ---- learning ----------------------------------------------------------- */

static const bm_figure learning[] = {
    {.title = "loss",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "nats"},
     .log_if_wide = true,
     .count = bm_figure_epochs,
     .at = bm_figure_epoch_at,
     .solid = dev_loss,
     .solid_name = "dev",
     .dashed = train_loss,
     .dashed_name = "training",
     .caption =
         "Loss on dev (solid) and in training (dashed): lower is better; "
         "where dev rises while training falls, the network learns the "
         "training data by heart."},
    {.title = "label errors",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "of all labels", .percent = true, .from_zero = true},
     .cut = true,
     .count = bm_figure_epochs,
     .at = bm_figure_epoch_at,
     .solid = dev_error,
     .solid_name = "dev",
     .dashed = train_error,
     .dashed_name = "training",
     .caption =
         "Wrong labels on dev (solid) and in training (dashed): lower is "
         "better; this is the number to choose a run by. The first epochs "
         "may be above the figure."},
    {.title = "label errors on dev over time",
     .x = {.title = "minutes of training", .from_zero = true},
     .y = {.title = "of all labels", .percent = true, .from_zero = true},
     .cut = true,
     .count = bm_figure_epochs,
     .at = minutes_at,
     .when = bm_figure_epoch_at,
     .solid = dev_error,
     .caption = "The same over the time that training took: the curve further "
                "to the left is faster on the machine that was used."},
    {.title = "learning rate",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "train.rate by its schedule"},
     .log_if_wide = true,
     .count = bm_figure_epochs,
     .at = bm_figure_epoch_at,
     .solid = rate,
     .caption = "Step size of the local update: errors usually fall further "
                "while it becomes small."},
    {0}};

bm_status bm_report_learning(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "Learning curves");
    if (r->n_groups < r->n)
        bm_report_page_words(
            f, "Runs that differ in their seed only are drawn as one line, "
               "their mean, in a band from the smallest to the largest: a "
               "difference within the bands may be luck.");
    BM_TRY(bm_figures_draw(
        f, r, learning, "No block is done yet, so there is nothing to draw."));
    bm_report_page_section_end(f);
    return BM_OK;
}

/* ---- the filter --------------------------------------------------------- */

static const bm_figure filter[] = {
    {.title = "length of updates",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "norm of weights", .scale = BM_PLOT_LOG},
     .count = bm_figure_blocks,
     .at = bm_figure_block_at,
     .solid = delta_norm,
     .solid_name = "filtered update Delta",
     .dashed = g_norm,
     .dashed_name = "mean update G",
     .caption =
         "How far a block moves the workers' mean (G, dashed) and how "
         "far the filter moves the model (Delta, solid): Delta is longer "
         "where blocks agree."},
    {.title = "cosine of G and Delta",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "1: the same direction; 0: no relation"},
     .count = bm_figure_blocks,
     .at = bm_figure_block_at,
     .solid = cosine,
     .caption = "Near 1 blocks go on in one direction and could be longer, or "
                "have more momentum; near 0 a mean update is mostly noise."},
    {.title = "effective gain",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "cosine x |Delta| / |G|", .from_zero = true},
     .cut = true,
     .count = bm_figure_blocks,
     .at = bm_figure_block_at,
     .solid = gain,
     .solid_name = "effective gain",
     .dashed = steady_gain,
     .dashed_name = "steady gain zeta / (1 - eta)",
     .caption = "How much further than G the model moves along G: it comes to "
                "the steady gain (dashed), which should be about the number of "
                "workers, where blocks agree; above that, G is shrinking, as "
                "at the end of training."},
    {0}};

bm_status bm_report_filter(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "What the filter does");
    bm_report_page_words(
        f,
        "After each block the mean G of the workers' changes is filtered: "
        "Delta = eta Delta + zeta G, and the model moves by Delta. eta is the "
        "block momentum, zeta the block rate.");
    BM_TRY(bm_figures_draw(
        f, r, filter,
        "These runs exchange no models after blocks, or have no "
        "block yet: there is no filter to look at."));
    bm_report_page_section_end(f);
    return BM_OK;
}
