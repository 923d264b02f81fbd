#include "io/shard/h5.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_TEXT = 1 << 20, LONGEST_STRING = 1 << 12, MOST_FILTERS = 8 };
enum { DEFLATE_RATIO = 1032 }; /* the best compression it can reach */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char reason[512];

/* The library may have been built without thread safety. Its exit handler
 * crashes after a full disk, and is not needed: all files are closed by
 * then. */
void bm_h5_enter(void)
{
    static bool entered;

    pthread_mutex_lock(&mutex);
    if (!entered)
        H5dont_atexit();
    entered = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void bm_h5_leave(void)
{
    pthread_mutex_unlock(&mutex);
}

static herr_t note(unsigned n, const H5E_error2_t *error, void *_)
{
    static const char before[] = "error message = '";
    const char *system = strstr(error->desc, before);

    (void)_;
    if (n == 0 && system != NULL)
        snprintf(reason, sizeof reason, "%.*s",
                 (int)strcspn(system + sizeof before - 1, "'"),
                 system + sizeof before - 1);
    else if (n == 0)
        snprintf(reason, sizeof reason, "%s: %s", error->func_name,
                 error->desc);
    return 0;
}

const char *bm_h5_reason(void)
{
    snprintf(reason, sizeof reason, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note, NULL);
    return reason;
}

static herr_t find_errno(unsigned n, const H5E_error2_t *error, void *found)
{
    const char *number = strstr(error->desc, "errno = ");

    (void)n;
    if (number != NULL && strtol(number + strlen("errno = "), NULL, 10) > 0)
        *(bool *)found = true;
    return 0;
}

bm_status bm_h5_failure(void)
{
    bool found = false;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_errno, &found);
    return found ? BM_ERR_IO : BM_ERR_FORMAT;
}

/* Order matters: the fields must fit before the size shrinks. */
hid_t bm_h5_half(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

static bm_status invalid(const char *path)
{
    const char *kind = bm_file_kind(path);

    if (kind == NULL)
        kind = bm_text_kind(path);
    if (kind != NULL && !bm_ends_with(path, ".h5") &&
        (kind == bm_kind_text || kind == bm_kind_json))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, not a shard; if it is a manifest, pack it "
                       "first: bmuf pack --audio %s --out DIR, or with "
                       "--images or --features",
                       path, kind, bm_shell_word(path).text);
    /* The first bytes of a shard can be taken for any text or binary file. */
    if (kind != NULL && kind != bm_kind_binary && kind != bm_kind_text &&
        kind != bm_kind_hdf5)
        return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a shard; %s", path, kind,
                       bm_file_kind_use(kind));
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: empty, truncated, or not completely written; make or "
                   "copy it again (HDF5: %s)",
                   path, bm_h5_reason());
}

bm_status bm_h5_open(bm_h5_file *out, const char *path)
{
    struct stat info = {0};
    hid_t access = H5I_INVALID_HID, id = H5I_INVALID_HID;
    int fd = -1;
    bm_status status = BM_OK;

    BM_TRY(bm_file_open_regular(&fd, path));
    if (fstat(fd, &info) != 0)
        status = BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
    close(fd);
    BM_TRY(status);
    access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, 0, 1);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    id = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (id < 0 && bm_h5_failure() == BM_ERR_IO)
        status =
            BM_FAIL(BM_ERR_IO, "%s cannot be read: %s", path, bm_h5_reason());
    else if (id < 0) /* before H5Pclose, which clears the reason */
        status = invalid(path);
    H5Pclose(access);
    BM_TRY(status);
    *out = (bm_h5_file){path, id, (uint64_t)info.st_size};
    return BM_OK;
}

/* `found` is 0 or, if the file cannot be read, negative. */
static bm_status absent(const bm_h5_file *f, htri_t found, const char *what,
                        const char *name, const char *verdict)
{
    if (found < 0 && bm_h5_failure() == BM_ERR_IO)
        return BM_FAIL(BM_ERR_IO, "%s: %s%s cannot be read: %s", f->path, what,
                       name, bm_h5_reason());
    return BM_FAIL(BM_ERR_FORMAT, "%s: %s%s %s", f->path, what, name, verdict);
}

/* Every step on the path to an object must be a hard link within this file. */
static bm_status follow(const bm_h5_file *f, const char *name)
{
    char prefix[128];
    H5L_info_t info;
    htri_t found = 0;

    for (const char *end = name; end != NULL;) {
        end = strchr(end + 1, '/');
        snprintf(prefix, sizeof prefix, "%.*s",
                 (int)(end != NULL ? (size_t)(end - name) : strlen(name)),
                 name);
        if (strcmp(prefix, "/") == 0)
            continue;
        found = H5Lexists(f->id, prefix, H5P_DEFAULT);
        if (found <= 0)
            return absent(f, found, "/", prefix, "is missing; not a shard");
        if (H5Lget_info(f->id, prefix, &info, H5P_DEFAULT) < 0)
            return BM_FAIL(bm_h5_failure(), "%s: /%s: %s", f->path, prefix,
                           bm_h5_reason());
        if (info.type != H5L_TYPE_HARD)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: /%s is a soft or external link, which is not "
                           "allowed",
                           f->path, prefix);
    }
    return BM_OK;
}

/* The group whose attributes are read. */
static const char attributes[] = "bmuf";

bool bm_h5_has(const bm_h5_file *f, const char *name)
{
    return H5Aexists_by_name(f->id, attributes, name, H5P_DEFAULT) > 0;
}

/* Opens an attribute of one element. */
static bm_status attribute(const bm_h5_file *f, const char *name, hid_t *out,
                           hid_t *type)
{
    hid_t id = H5I_INVALID_HID, extent = H5I_INVALID_HID;
    htri_t found = 0;
    bm_status status = BM_OK;

    BM_TRY(follow(f, attributes));
    found = H5Aexists_by_name(f->id, attributes, name, H5P_DEFAULT);
    if (found <= 0)
        return absent(f, found, "attribute ", name, "is missing; not a shard");
    id = H5Aopen_by_name(f->id, attributes, name, H5P_DEFAULT, H5P_DEFAULT);
    extent = H5Aget_space(id);
    if (H5Sget_simple_extent_npoints(extent) != 1)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: attribute %s is not one value",
                     f->path, name);
    *type = H5Aget_type(id);
    *out = id;
    id = H5I_INVALID_HID;
done:
    H5Sclose(extent);
    if (id >= 0)
        H5Aclose(id);
    return status;
}

bm_status bm_h5_number(const bm_h5_file *f, const char *name, int64_t *out)
{
    hid_t id = H5I_INVALID_HID, type = H5I_INVALID_HID;
    bm_status status = BM_OK;

    BM_TRY(attribute(f, name, &id, &type));
    if (H5Tget_class(type) != H5T_INTEGER)
        status = BM_FAIL(BM_ERR_FORMAT, "%s: attribute %s is not a number",
                         f->path, name);
    else if (H5Aread(id, H5T_NATIVE_INT64, out) < 0)
        status = BM_FAIL(bm_h5_failure(), "%s: attribute %s: %s", f->path, name,
                         bm_h5_reason());
    H5Tclose(type);
    H5Aclose(id);
    return status;
}

bm_status bm_h5_text(const bm_h5_file *f, const char *name, char **out)
{
    hid_t id = H5I_INVALID_HID, type = H5I_INVALID_HID;
    char *text = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    BM_TRY(attribute(f, name, &id, &type));
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0)
        n = H5Tget_size(type);
    if (n == 0 || n > LONGEST_TEXT)
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s: attribute %s is not a fixed-length text", f->path,
                     name);
    text = calloc(n + 1, 1);
    if (text == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %s of %s", name, f->path);
    if (H5Aread(id, type, text) < 0)
        BM_FAIL_DONE(bm_h5_failure(), "%s: attribute %s: %s", f->path, name,
                     bm_h5_reason());
    *out = text;
    text = NULL;
done:
    free(text);
    H5Tclose(type);
    H5Aclose(id);
    return status;
}

/* All bytes of a contiguous array are in the file. */
static bool whole(const bm_h5_file *f, const bm_h5_array *a, uint64_t bytes)
{
    haddr_t at = H5Dget_offset(a->id);

    return bytes == 0 ||
           (H5Dget_storage_size(a->id) == bytes && at != HADDR_UNDEF &&
            at <= f->size && bytes <= f->size - at);
}

/* HDF5 1.10 refuses H5S_ALL here. */
static bool count_chunks(const bm_h5_array *a, hsize_t *n)
{
    hid_t extent = H5Dget_space(a->id);
    bool good = H5Dget_num_chunks(a->id, extent, n) >= 0;

    H5Sclose(extent);
    return good;
}

/* Chunks of full rows, or `any`, none missing, with filters of HDF5 itself
 * only. */
static bool plain_chunks(const bm_h5_file *f, const bm_h5_array *a, hid_t plist,
                         uint64_t bytes, bool any)
{
    hsize_t chunk[2] = {1, 1}, found = 0;
    int filters = H5Pget_nfilters(plist);
    uint64_t ratio = 1, stored = H5Dget_storage_size(a->id);

    if (H5Pget_chunk(plist, 2, chunk) != a->rank || chunk[0] == 0 ||
        (a->rank == 2 && chunk[1] != a->dim[1] && !any) || chunk[1] == 0 ||
        filters > MOST_FILTERS)
        return false;
    for (int i = 0; i < filters; i++) {
        unsigned flags = 0;
        size_t none = 0;
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &none,
                                         NULL, 0, NULL, NULL);
        if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE &&
            id != H5Z_FILTER_FLETCHER32)
            return false;
        if (id == H5Z_FILTER_DEFLATE)
            ratio = DEFLATE_RATIO;
    }
    return stored <= f->size && bytes / ratio <= stored &&
           count_chunks(a, &found) &&
           found == (a->dim[0] / chunk[0] + (a->dim[0] % chunk[0] != 0)) *
                        (a->dim[1] / chunk[1] + (a->dim[1] % chunk[1] != 0));
}

static bm_status check_layout(const bm_h5_file *f, const bm_h5_array *a,
                              uint64_t bytes, bool any)
{
    hid_t plist = H5Dget_create_plist(a->id);
    H5D_layout_t layout = H5Pget_layout(plist);
    bool external = H5Pget_external_count(plist) != 0, good = false;

    if (layout == H5D_CONTIGUOUS && !external)
        good = whole(f, a, bytes);
    else if (layout == H5D_CHUNKED && !external)
        good = plain_chunks(f, a, plist, bytes, any);
    H5Pclose(plist);
    if (!good)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /%s is incomplete, or neither contiguous nor in "
                       "chunks%s",
                       f->path, a->name, any ? "" : " of full rows");
    return BM_OK;
}

/* Reads and checks dimensions and type of an open array. */
static bm_status check_array(const bm_h5_file *f, bm_h5_array *a, bool any)
{
    hid_t extent = H5Dget_space(a->id);
    hsize_t dim[2] = {1, 1};
    enum { VARIABLE = 4 + 8 + 4 }; /* length and place in the file */
    size_t stored = 0;
    H5T_class_t class = H5T_NO_CLASS;
    bool simple = H5Sget_simple_extent_type(extent) == H5S_SIMPLE;

    a->rank = simple ? H5Sget_simple_extent_ndims(extent) : 0;
    if (a->rank == 1 || a->rank == 2)
        H5Sget_simple_extent_dims(extent, dim, NULL);
    H5Sclose(extent);
    if (a->rank != 1 && a->rank != 2)
        return BM_FAIL(BM_ERR_FORMAT, "%s: /%s has %d dimensions, not 1 or 2",
                       f->path, a->name, a->rank);
    a->dim[0] = dim[0];
    a->dim[1] = dim[1];
    a->type = H5Dget_type(a->id);
    class = H5Tget_class(a->type);
    if ((class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_STRING) ||
        (H5Tis_variable_str(a->type) != 0 && !any))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /%s: elements are neither numbers nor fixed-length "
                       "texts",
                       f->path, a->name);
    stored = a->item = H5Tget_size(a->type);
    if (a->item == 0 || a->item > LONGEST_STRING || a->dim[1] > SIZE_MAX / 2 ||
        (a->dim[0] > 0 && a->dim[1] > 0 &&
         a->dim[0] > PTRDIFF_MAX / a->item / a->dim[1]))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /%s: impossible size %" PRIu64 " x %" PRIu64
                       " of elements of %zu bytes",
                       f->path, a->name, a->dim[0], a->dim[1], a->item);
    if (H5Tis_variable_str(a->type) > 0)
        stored = VARIABLE;
    return check_layout(f, a, a->dim[0] * a->dim[1] * stored, any);
}

static bm_status open_array(const bm_h5_file *f, const char *name, bool any,
                            bm_h5_array *out)
{
    bm_h5_array a = {name, H5I_INVALID_HID, H5I_INVALID_HID, 0, {0}, 0};
    bm_status status = BM_OK;

    BM_TRY(follow(f, name));
    a.id = H5Dopen2(f->id, name, H5P_DEFAULT);
    if (a.id < 0)
        return BM_FAIL(bm_h5_failure(), "%s: /%s: %s", f->path, name,
                       bm_h5_reason());
    status = check_array(f, &a, any);
    if (status != BM_OK)
        bm_h5_array_close(&a);
    else
        *out = a;
    return status;
}

bm_status bm_h5_array_open(const bm_h5_file *f, const char *name,
                           bm_h5_array *out)
{
    return open_array(f, name, false, out);
}

bm_status bm_h5_array_open_any(const bm_h5_file *f, const char *name,
                               bm_h5_array *out)
{
    return open_array(f, name, true, out);
}

void bm_h5_array_close(bm_h5_array *a)
{
    if (a->type > 0)
        H5Tclose(a->type);
    if (a->id > 0)
        H5Dclose(a->id);
    a->type = a->id = H5I_INVALID_HID;
}

bm_status bm_h5_rows(const bm_h5_file *f, const bm_h5_array *a, uint64_t first,
                     uint64_t rows, void *out)
{
    return bm_h5_rows_as(f, a, first, rows, a->type, out);
}

bm_status bm_h5_rows_as(const bm_h5_file *f, const bm_h5_array *a,
                        uint64_t first, uint64_t rows, hid_t type, void *out)
{
    hsize_t start[2] = {first, 0}, count[2] = {rows, a->dim[1]};
    hid_t file = H5I_INVALID_HID, memory = H5I_INVALID_HID;
    bm_status status = BM_OK;

    if (rows == 0 || a->dim[1] == 0)
        return BM_OK;
    BM_ASSERT(first <= a->dim[0] && rows <= a->dim[0] - first);
    file = H5Dget_space(a->id);
    memory = H5Screate_simple(a->rank, count, NULL);
    if (H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) <
            0 ||
        H5Dread(a->id, type, memory, file, H5P_DEFAULT, out) < 0)
        status =
            BM_FAIL(bm_h5_failure(),
                    "%s: /%s: rows %" PRIu64 " to %" PRIu64
                    " cannot be read (HDF5: %s)" BM_RUN_CHECK,
                    f->path, a->name, first, first + rows - 1, bm_h5_reason());
    H5Sclose(memory);
    H5Sclose(file);
    return status;
}

bm_status bm_h5_table(const bm_h5_file *f, const char *name, hid_t type,
                      uint64_t columns, uint64_t *rows, void **out)
{
    bm_h5_array a = {0};
    void *data = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_h5_array_open(f, name, &a));
    if (a.rank != (columns > 0 ? 2 : 1) ||
        (columns > 0 && a.dim[1] != columns) ||
        (*rows != BM_H5_ANY && a.dim[0] != *rows))
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s: /%s is %" PRIu64 " x %" PRIu64
                     ", which disagrees with the other tables",
                     f->path, name, a.dim[0], a.dim[1]);
    if (H5Tequal(a.type, type) <= 0)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: /%s has the wrong type of number",
                     f->path, name);
    data = malloc(a.dim[0] * a.dim[1] * a.item + 1);
    if (data == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for /%s of %s", name, f->path);
    BM_TRY_DONE(bm_h5_rows(f, &a, 0, a.dim[0], data));
    *rows = a.dim[0];
    *out = data;
    data = NULL;
done:
    free(data);
    bm_h5_array_close(&a);
    return status;
}

bm_status bm_h5_strings(const bm_h5_file *f, const char *name, uint64_t *rows,
                        size_t *width, char **out)
{
    bm_h5_array a = {0};
    char *raw = NULL, *text = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_h5_array_open(f, name, &a));
    if (a.rank != 1 || H5Tget_class(a.type) != H5T_STRING)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: /%s is not a list of texts", f->path,
                     name);
    raw = malloc(a.dim[0] * a.item + 1);
    text = calloc(a.dim[0] + 1, a.item + 1);
    if (raw == NULL || text == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for /%s of %s", name, f->path);
    BM_TRY_DONE(bm_h5_rows(f, &a, 0, a.dim[0], raw));
    for (uint64_t i = 0; i < a.dim[0]; i++)
        memcpy(text + i * (a.item + 1), raw + i * a.item, a.item);
    *rows = a.dim[0];
    *width = a.item + 1;
    *out = text;
    text = NULL;
done:
    free(raw);
    free(text);
    bm_h5_array_close(&a);
    return status;
}
