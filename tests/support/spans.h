/*
 * spans.h - a rank as the watchdog sees it: the longest time in which no span of
 * this thread began or ended, without those in which it waited for other ranks.
 *
 *     spans_begin();
 *     ..
 *     assert_true(spans_end() < 0.2);
 */
#ifndef BM_TESTS_SUPPORT_SPANS_H
#define BM_TESTS_SUPPORT_SPANS_H

void spans_begin(void);
double spans_end(void); /* seconds since spans_begin */

#endif
