/*
 * digits.h - small sets of spoken digits, in the folder of folder.h: of the
 * real data where they are, else a tone for each letter.
 */
#ifndef BM_TESTS_SUPPORT_DIGITS_H
#define BM_TESTS_SUPPORT_DIGITS_H

/* "train" of 60 recordings and "dev" of 20, packed by the program. */
void digits_make(void);

/* For groups of tests of whole runs: the folder with these sets in it, and the
 * end of all programs that still run. */
int digits_set_up(void **state);
int digits_tear_down(void **state);

/* One more set of all recordings of "train", in units of so many frames; the
 * first of them has another text, unless that is NULL. */
void digits_pack(const char *name, int unit_frames, const char *first_text);

/* The file that a set consists of. */
const char *digits_file(const char *name);

#endif
