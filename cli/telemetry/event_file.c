#include "cli/telemetry/event_file.h"

#include "core/log.h"
#include "io/shard/crc32c.h"

#include <errno.h>
#include <event.pb-c.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bm_event_file {
    int fd;
    char path[PATH_MAX];
    double opened;
    int64_t first; /* step */
    off_t size;    /* of whole records */
    bool begun;    /* the file has what begin() writes */
    bool warned;   /* that something is left out */
};

/* ---- records ------------------------------------------------------------- */

/* A record: the length of the data, its checksum, the data, their checksum. */
enum { LENGTH = 8, CHECKSUM = 4, HEAD = LENGTH + CHECKSUM };

static void put(unsigned char *to, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(x >> 8 * i);
}

/* The checksum is rotated and shifted by a constant, so that that of data which
 * contain checksums is no special case. */
static uint32_t masked_crc(const void *data, size_t n)
{
    uint32_t crc = bm_crc32c(data, n);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Writes all, or returns an errno. */
static int write_all(int fd, const unsigned char *from, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, from, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? errno : ENOSPC;
        from += k;
        n -= (size_t)k;
    }
    return 0;
}

/* Appends a whole record, or nothing. Returns 0 or an errno. */
static int append(bm_event_file *f, const Tensorboard__Event *event)
{
    size_t n = tensorboard__event__get_packed_size(event);
    unsigned char *record = malloc(HEAD + n + CHECKSUM);
    int error = ENOMEM;

    if (record == NULL)
        return error;
    tensorboard__event__pack(event, record + HEAD);
    put(record, n, LENGTH);
    put(record + LENGTH, masked_crc(record, LENGTH), CHECKSUM);
    put(record + HEAD + n, masked_crc(record + HEAD, n), CHECKSUM);
    error = write_all(f->fd, record, HEAD + n + CHECKSUM);
    if (error == 0)
        f->size += (off_t)(HEAD + n + CHECKSUM);
    else if (ftruncate(f->fd, f->size) != 0)
        error = errno; /* a reader stops at half a record */
    free(record);
    return error;
}

/* What every file begins with. Returns 0 or an errno. */
static int begin(bm_event_file *f)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    Tensorboard__SessionLog log = TENSORBOARD__SESSION_LOG__INIT;
    char version[] = "brain.Event:2";
    int error = 0;

    event.has_wall_time = true;
    event.wall_time = f->opened;
    event.file_version = version;
    if (f->size == 0)
        error = append(f, &event);
    if (error != 0)
        return error;
    event.file_version = NULL;
    event.has_step = true;
    event.step = f->first;
    event.session_log = &log;
    log.has_status = true;
    log.status = TENSORBOARD__SESSION_LOG__SESSION_STATUS__START;
    error = append(f, &event);
    f->begun = error == 0;
    return error;
}

static void append_values(bm_event_file *f, double now, int64_t step,
                          Tensorboard__Summary__Value **values, size_t n)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    int error = 0;

    event.has_wall_time = event.has_step = true;
    event.wall_time = now;
    event.step = step;
    event.summary = &summary;
    summary.value = values;
    summary.n_value = n;
    if (!f->begun)
        error = begin(f);
    if (error == 0)
        error = append(f, &event);
    if (error == 0 || f->warned)
        return;
    f->warned = true;
    bm_log(BM_WARNING,
           "%s cannot be written, values for TensorBoard are left out: %s; "
           "training goes on",
           f->path, strerror(error));
}

/* ---- the file ------------------------------------------------------------ */

static void name_file(bm_event_file *f, const char *directory, int attempt)
{
    char host[256] = "";

    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "localhost");
    snprintf(f->path, sizeof f->path, "%s/events.out.tfevents.%010lld.%04d.%s",
             directory, (long long)f->opened, attempt, host);
}

bm_status bm_event_file_open(bm_event_file **out, const char *directory,
                             int attempt, int64_t first, double now)
{
    bm_event_file *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an event file");
    f->opened = now;
    f->first = first;
    name_file(f, directory, attempt);
    f->fd =
        open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        status = BM_FAIL(BM_ERR_CREATE, "%s cannot be created: %s", f->path,
                         strerror(errno));
        free(f);
        return status;
    }
    *out = f;
    return BM_OK;
}

void bm_event_file_close(bm_event_file *f)
{
    if (f == NULL)
        return;
    close(f->fd);
    free(f);
}

/* ---- values -------------------------------------------------------------- */

void bm_event_file_scalars(bm_event_file *f, double now, int64_t step,
                           bm_scalar *values, size_t n)
{
    enum { MOST = 64 };
    Tensorboard__Summary__Value all[MOST], *list[MOST];

    BM_ASSERT(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        tensorboard__summary__value__init(&all[i]);
        all[i].tag = values[i].tag;
        all[i].has_simple_value = true;
        all[i].simple_value = (float)values[i].value;
        list[i] = &all[i];
    }
    if (n > 0)
        append_values(f, now, step, list, n);
}

/* protobuf-c has no const: the text is only read. */
static void append_value(bm_event_file *f, double now, int64_t step,
                         const char *tag, Tensorboard__Summary__Value *value)
{
    char *copy = strdup(tag);

    value->tag = copy;
    if (copy != NULL)
        append_values(f, now, step, &value, 1);
    free(copy);
}

void bm_event_file_histogram(bm_event_file *f, double now, int64_t step,
                             const char *tag, const bm_histogram *h)
{
    Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;
    Tensorboard__HistogramProto histo = TENSORBOARD__HISTOGRAM_PROTO__INIT;
    bm_histogram copy = *h;

    histo.has_min = histo.has_max = histo.has_num = true;
    histo.has_sum = histo.has_sum_squares = true;
    histo.min = h->min;
    histo.max = h->max;
    histo.num = h->n;
    histo.sum = h->sum;
    histo.sum_squares = h->sum_squares;
    histo.n_bucket_limit = histo.n_bucket = h->bins;
    histo.bucket_limit = copy.limit;
    histo.bucket = copy.count;
    value.histo = &histo;
    append_value(f, now, step, tag, &value);
}

void bm_event_file_text(bm_event_file *f, double now, int64_t step,
                        const char *tag, const char *text)
{
    Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT;
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__SummaryMetadata__PluginData plugin =
        TENSORBOARD__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Tensorboard__TensorShapeProto shape = TENSORBOARD__TENSOR_SHAPE_PROTO__INIT;
    Tensorboard__TensorProto tensor = TENSORBOARD__TENSOR_PROTO__INIT;
    char name[] = "text";
    char *copy = strdup(text);
    ProtobufCBinaryData bytes = {strlen(text), (unsigned char *)copy};

    plugin.plugin_name = name;
    metadata.plugin_data = &plugin;
    tensor.has_dtype = true;
    tensor.dtype = TENSORBOARD__DATA_TYPE__DT_STRING;
    tensor.tensor_shape = &shape; /* no dimensions: one text */
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    value.metadata = &metadata;
    value.tensor = &tensor;
    if (copy != NULL)
        append_value(f, now, step, tag, &value);
    free(copy);
}
