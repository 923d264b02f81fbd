/*
 * forge.h - changes in a shard of a corpus of twelve sequences, stored as f32,
 * with the digest and the checksums that whoever forges it would give it.
 */
#ifndef BM_TESTS_SUPPORT_FORGE_H
#define BM_TESTS_SUPPORT_FORGE_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* A new attribute of /bmuf in place of an old one. */
void forge_attribute(hid_t file, const char *name, hid_t type,
                     const void *value);

/* Computes the digest of the tables anew. */
void forge_seal(hid_t file);

/* Changes element `at` of a table, of 32 bits whatever the type, and seals. */
void forge_number(hid_t file, const char *name, hid_t type, size_t at,
                  uint32_t value);

/* Changes label `at` of the shard, one of unit 0, and that unit's checksum. */
void forge_label(const char *path, size_t at, int32_t value);

#endif
