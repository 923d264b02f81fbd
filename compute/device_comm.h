/*
 * device_comm.h - communication between devices without the host, with one
 * device for each rank. All calls between begin and end form one group:
 *
 *     bm_device_comm_begin(be);
 *     bm_device_comm_send(be, x, n, to);         rank `to` receives it
 *     bm_device_comm_receive(be, y, n, from);    rank `from` sends it
 *     bm_device_comm_broadcast(be, z, n, root);  z of the root, to all ranks
 *     bm_device_comm_end(be);
 *     status = bm_device_comm_wait(be);
 *
 * Groups are queued like operations. Call bm_device_comm_wait before anything
 * else that waits for the device or for other ranks: a rank that has failed
 * does not send what others wait for, and only this wait notices.
 */
#ifndef BM_COMPUTE_DEVICE_COMM_H
#define BM_COMPUTE_DEVICE_COMM_H

#include "compute/backend.h"

#include <stdbool.h>
#include <stdint.h>

/* Identifies a communicator: made by one rank, passed to all others. */
typedef struct bm_device_comm_id {
    char bytes[128];
} bm_device_comm_id;

/* failed(self) returns whether another rank has failed. Polled while waiting.
 */
typedef struct bm_device_comm_watch {
    bool (*failed)(void *self);
    void *self; /* borrowed until bm_device_comm_close */
} bm_device_comm_watch;

/* What a backend implements; each is the function of the same name below. */
typedef struct bm_device_comm_ops {
    bm_status (*load)(bm_backend *be, int64_t *device);
    bm_status (*make_id)(bm_backend *be, bm_device_comm_id *out);
    bm_status (*open)(bm_backend *be, const bm_device_comm_id *id, int rank,
                      int size, bm_device_comm_watch watch);
    bm_status (*wait)(bm_backend *be);
    float *(*floats)(bm_backend *be, float *x, size_t n);
    void (*close)(bm_backend *be);
    void (*begin)(bm_backend *be);
    void (*end)(bm_backend *be); /* also called after a failure */
    void (*send)(bm_backend *be, const float *x, size_t n, int to);
    void (*receive)(bm_backend *be, float *x, size_t n, int from);
    void (*broadcast)(bm_backend *be, float *x, size_t n, int root);
} bm_device_comm_ops;

/* Loads what the communication needs; the first call. *device: a number that
 * identifies the device on this host. Fails with BM_ERR_UNSUPPORTED if the
 * backend or a library lacks it (the message says what), or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_device_comm_load(bm_backend *be, int64_t *device);

/* A new id, for one call of bm_device_comm_open on each rank. Fails with
 * BM_ERR_DEVICE. */
BM_CHECKED bm_status bm_device_comm_make_id(bm_backend *be,
                                            bm_device_comm_id *out);

/* Collective over `size` ranks, each with a device of its own and the same id.
 * A backend has one communicator: further calls share the first one, with its
 * watch, until each of them has been closed. Fails with BM_ERR_DEVICE, or with
 * BM_ERR_COMM if the watch reports a failed rank; close it then, too. */
BM_CHECKED bm_status bm_device_comm_open(bm_backend *be,
                                         const bm_device_comm_id *id, int rank,
                                         int size, bm_device_comm_watch watch);
void bm_device_comm_close(bm_backend *be); /* no-op if it is not open */

/* As bm_sync. If this rank or another one has failed, pending communication is
 * aborted, the communicator is closed, and the failure is returned; BM_ERR_COMM
 * if only the watch reported it. */
BM_CHECKED bm_status bm_device_comm_wait(bm_backend *be);

/* Queued. No-ops after a failure, except that end closes an open group. n
 * floats on the backend. Begin fails with BM_ERR_COMM if the communicator is
 * closed. */
void bm_device_comm_begin(bm_backend *be);
void bm_device_comm_end(bm_backend *be);
void bm_device_comm_send(bm_backend *be, const float *x, size_t n, int to);
void bm_device_comm_receive(bm_backend *be, float *x, size_t n, int from);
void bm_device_comm_broadcast(bm_backend *be, float *x, size_t n, int root);

/* The n floats of x, for libraries that access the device's memory themselves:
 * to read and to write after a bm_sync and before the next operation. Needs no
 * communicator. */
float *bm_device_comm_floats(bm_backend *be, float *x, size_t n);

#endif
