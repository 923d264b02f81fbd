/*
 * file_kind.h - tells what a file is that was given in place of another, for
 * the one line of an error message. Nothing here fails.
 *
 *     kind = bm_file_kind(path);
 *     if (kind != NULL)
 *         BM_FAIL(.., "%s is %s, not a manifest; %s", path, kind,
 *                 bm_file_kind_use(kind));
 */
#ifndef BM_CORE_FILE_FILE_KIND_H
#define BM_CORE_FILE_FILE_KIND_H

#include <stddef.h>

/* What a file is by its first bytes: "a PNG image". NULL: a text, empty,
 * unknown, or cannot be read. Static. */
const char *bm_file_kind(const char *path);

/* The same for a text, by its first line: "a Kaldi scp file", "JSON", or NULL:
 * empty, or not a text. Static. */
const char *bm_text_kind(const char *path);

/* Results of bm_file_kind that are compared, by address. */
extern const char bm_kind_binary[]; /* of unknown kind */
extern const char bm_kind_hdf5[];
extern const char bm_kind_safetensors[];
extern const char bm_kind_gzip[];
extern const char bm_kind_ark[]; /* of Kaldi */
extern const char bm_kind_npy[];
extern const char bm_kind_npz[];

/* Those of bm_text_kind. */
extern const char bm_kind_text[]; /* of unknown kind */
extern const char bm_kind_configuration[];
extern const char bm_kind_json[];
extern const char bm_kind_scp[]; /* of Kaldi */
extern const char bm_kind_xml[];

/* What to do with a file of this kind, a result of the two functions above:
 * "bmuf eval, decode and info take models". Static. */
const char *bm_file_kind_use(const char *kind);

#endif
