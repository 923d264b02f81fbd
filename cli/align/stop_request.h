/* stop_request.h - signals that end bmuf align are requests that are checked
 * between sequences, so that files in TMPDIR are removed. */
#ifndef BM_CLI_ALIGN_STOP_REQUEST_H
#define BM_CLI_ALIGN_STOP_REQUEST_H

#include "core/status.h"

/* From now on SIGINT, SIGTERM and SIGHUP are noted; a second one ends at once. */
void bm_stop_request_catch(void);

/* Fails with BM_STOPPED if a signal has come. */
BM_CHECKED bm_status bm_stop_request_check(void);

/* Ends the process by the signal that has come; without one a no-op. */
void bm_stop_request_obey(void);

#endif
