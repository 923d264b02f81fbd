/*
 * device_comm.h - devices that send to each other without the host, one for
 * each rank. What is between begin and end goes together:
 *
 *     bm_device_comm_begin(be);
 *     bm_device_comm_send(be, x, n, to);             the other rank receives as
 * many bm_device_comm_receive(be, y, n, from); bm_device_comm_broadcast(be, z,
 * n, root);      z of the root becomes everybody's bm_device_comm_end(be);
 *
 *     bm_device_comm_wait(be);
 *
 * Queued like arithmetic. All that a rank has queued must have happened, by
 * bm_device_comm_wait, before it waits for the device or for other ranks in
 * another way: a rank that fails does not send what others wait for, and this
 * wait alone notices.
 */
#ifndef BM_COMPUTE_DEVICE_COMM_H
#define BM_COMPUTE_DEVICE_COMM_H

#include "compute/backend.h"

#include <stdbool.h>

/* How ranks find each other: made by one, told to all. */
typedef struct bm_device_comm_id {
    char bytes[128];
} bm_device_comm_id;

/* Whether another rank has failed, and will not come. Asked again and again. */
typedef struct bm_device_comm_watch {
    bool (*failed)(void *self);
    void *self;
} bm_device_comm_watch;

typedef struct bm_device_comm_ops {
    bm_status (*load)(bm_backend *be, int64_t *device);
    bm_status (*name)(bm_backend *be, bm_device_comm_id *out);
    bm_status (*open)(bm_backend *be, const bm_device_comm_id *name, int rank,
                      int size, bm_device_comm_watch watch);
    bm_status (*wait)(bm_backend *be);
    float *(*floats)(bm_backend *be, float *x, size_t n);
    void (*close)(bm_backend *be);
    void (*begin)(bm_backend *be);
    void (*end)(bm_backend *be); /* also after a failure */
    void (*send)(bm_backend *be, const float *x, size_t n, int to);
    void (*receive)(bm_backend *be, float *x, size_t n, int from);
    void (*broadcast)(bm_backend *be, float *x, size_t n, int root);
} bm_device_comm_ops;

/* Has the backend, on this machine, what it takes? Else says what is missing.
 * *device: a number that no other device of this host has. */
BM_CHECKED bm_status bm_device_comm_load(bm_backend *be, int64_t *device);

BM_CHECKED bm_status bm_device_comm_make_id(bm_backend *be,
                                            bm_device_comm_id *out);

/* Collective. One mesh for a backend. No two ranks have the same device. Ends
 * when the watch says so, too. */
BM_CHECKED bm_status bm_device_comm_open(bm_backend *be,
                                         const bm_device_comm_id *name,
                                         int rank, int size,
                                         bm_device_comm_watch watch);
void bm_device_comm_close(bm_backend *be);

/* As bm_sync. If this rank has failed, or another one, what waits for others is
 * given up, and there is a mesh no more. */
BM_CHECKED bm_status bm_device_comm_wait(bm_backend *be);

void bm_device_comm_begin(bm_backend *be);
void bm_device_comm_end(bm_backend *be);
void bm_device_comm_send(bm_backend *be, const float *x, size_t n, int to);
void bm_device_comm_receive(bm_backend *be, float *x, size_t n, int from);
void bm_device_comm_broadcast(bm_backend *be, float *x, size_t n, int root);

/* Without a mesh: x for others than queued operations, to read and to write
 * after a bm_sync, and before the next operation. */
float *bm_device_comm_floats(bm_backend *be, float *x, size_t n);

#endif
