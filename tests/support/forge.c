#include "tests/support/forge.h"

#include "io/shard/crc32c.h"
#include "io/shard/shard_parts.h"
#include "tests/support/support.h"

/* HDF5 1.10 may not find an attribute it is to overwrite: a new one. */
void forge_attribute(hid_t file, const char *name, hid_t type,
                     const void *value)
{
    hid_t extent = H5Screate(H5S_SCALAR), id = 0;

    H5Adelete_by_name(file, "bmuf", name, H5P_DEFAULT);
    id = H5Acreate_by_name(file, "bmuf", name, type, extent, H5P_DEFAULT,
                           H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(extent);
}

void forge_seal(hid_t file)
{
    char digest[BM_DIGEST_LENGTH + 1];
    int32_t lengths[24];
    uint64_t unit[10 * BM_UNIT_COLUMNS];
    uint32_t crc[20];
    bm_shard_tables t = {.n = 12,
                         .store = BM_STORE_F32,
                         .lengths = lengths,
                         .unit = unit,
                         .crc = crc};
    hid_t id = H5Dopen2(file, "seqLengths", H5P_DEFAULT);
    hid_t type = 0;

    H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, lengths);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block_crc32c", H5P_DEFAULT);
    t.units = (size_t)H5Dget_storage_size(id) / 8;
    assert_true(t.units <= 10);
    H5Dread(id, H5T_NATIVE_UINT32, 0, 0, 0, crc);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block", H5P_DEFAULT);
    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, unit);
    H5Dclose(id);
    assert_ok(bm_shard_digest(&t, digest));
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, BM_DIGEST_LENGTH);
    forge_attribute(file, "tables_xxh3", type, digest);
    H5Tclose(type);
}

void forge_number(hid_t file, const char *name, hid_t type, size_t at,
                  uint32_t value)
{
    uint32_t x[64]; /* the bits, whatever the type */
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);

    H5Dread(id, type, 0, 0, 0, x);
    x[at] = value;
    assert_true(H5Dwrite(id, type, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    forge_seal(file);
}

void forge_label(const char *path, size_t at, int32_t value)
{
    bm_shard *s = NULL;
    bm_unit_size unit;
    int32_t labels[64];
    hid_t file = 0, id = 0;

    assert_ok(bm_shard_open(&s, path));
    unit = bm_shard_unit(s, 0);
    bm_shard_close(s);
    assert_true(at < unit.labels);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    id = H5Dopen2(file, "targets/data/classes", H5P_DEFAULT);
    H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, labels);
    labels[at] = value;
    assert_true(H5Dwrite(id, H5T_NATIVE_INT32, 0, 0, 0, labels) >= 0);
    H5Dclose(id);
    forge_number(file, "bmuf/block_crc32c", H5T_NATIVE_UINT32, 1,
                 bm_crc32c(labels, unit.labels * sizeof *labels));
    H5Fclose(file);
}
