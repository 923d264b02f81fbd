#include "io/import/returnn/returnn_keys.h"

#include <stdio.h>
#include <string.h>

static size_t add_key(bm_returnn_keys *k, const char *name)
{
    size_t at = 0;

    while (at < k->n && strcmp(k->name[at], name) < 0)
        at++;
    if (at < k->n && strcmp(k->name[at], name) == 0)
        return at;
    if (k->n == BM_RETURNN_MOST_KEYS || strlen(name) > BM_RETURNN_LONGEST_KEY) {
        k->failed = true;
        return 0;
    }
    memmove(k->name[at + 1], k->name[at], (k->n - at) * sizeof k->name[0]);
    memmove(&k->data[at + 1], &k->data[at], (k->n - at) * sizeof k->data[0]);
    memcpy(k->name[at], name, strlen(name) + 1);
    k->data[at] = false;
    k->n++;
    return at;
}

static herr_t note_link(hid_t group, const char *name, const H5L_info_t *info,
                        void *list)
{
    bm_returnn_keys *k = list;
    size_t at = add_key(k, name);

    (void)group;
    (void)info;
    if (!k->failed)
        k->data[at] = true;
    return k->failed;
}

static herr_t note_attribute(hid_t group, const char *name,
                             const H5A_info_t *info, void *list)
{
    bm_returnn_keys *k = list;

    (void)group;
    (void)info;
    (void)add_key(k, name);
    return k->failed;
}

bool bm_returnn_has(const bm_h5_file *f, const char *name)
{
    return H5Lexists(f->id, name, H5P_DEFAULT) > 0 &&
           H5Oexists_by_name(f->id, name, H5P_DEFAULT) > 0;
}

bm_status bm_returnn_find_keys(const bm_h5_file *f, bm_returnn_keys *k)
{
    hsize_t link = 0, attribute = 0;

    if (!bm_returnn_has(f, "targets") || !bm_returnn_has(f, "targets/data"))
        return BM_OK;
    if (H5Literate_by_name(f->id, "targets/data", H5_INDEX_NAME, H5_ITER_INC,
                           &link, note_link, k, H5P_DEFAULT) < 0)
        return BM_FAIL(bm_h5_failure(), "%s: /targets/data: %s", f->path,
                       bm_h5_reason());
    if (bm_returnn_has(f, "targets/size") &&
        H5Aiterate_by_name(f->id, "targets/size", H5_INDEX_NAME, H5_ITER_INC,
                           &attribute, note_attribute, k, H5P_DEFAULT) < 0)
        return BM_FAIL(bm_h5_failure(), "%s: /targets/size: %s", f->path,
                       bm_h5_reason());
    if (k->failed)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: more than %d targets, or one with a name of more "
                       "than %d bytes",
                       f->path, BM_RETURNN_MOST_KEYS, BM_RETURNN_LONGEST_KEY);
    return BM_OK;
}

static void list_keys(const bm_returnn_keys *k, char *out, size_t room)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < k->n && at + 1 < room; i++)
        if (k->data[i]) {
            int n = snprintf(out + at, room - at, " %s", k->name[i]);
            at += n > 0 ? (size_t)n : 0;
        }
}

bm_status bm_returnn_choose_key(const bm_h5_file *f, const bm_returnn_keys *k,
                                const char *wanted, size_t *key)
{
    size_t with_data = 0;
    char all[400];

    *key = k->n;
    for (size_t i = 0; i < k->n; i++) {
        with_data += k->data[i];
        if (k->data[i] &&
            strcmp(k->name[i], wanted[0] != '\0' ? wanted : "classes") == 0)
            *key = i;
    }
    for (size_t i = 0; i < k->n && wanted[0] == '\0' && with_data == 1; i++)
        if (k->data[i])
            *key = i;
    list_keys(k, all, sizeof all);
    if (*key < k->n || (with_data == 0 && wanted[0] == '\0'))
        return BM_OK;
    if (wanted[0] != '\0')
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: there are no targets '%s', which features.target "
                       "names; there are:%s",
                       f->path, wanted, all);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: which targets? Set features.target to one of:%s",
                   f->path, all);
}
