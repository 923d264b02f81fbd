/* server_report.h - what is told of a block's traffic between workers and a
 * parameter server: the journal's event "server", and a line. */
#ifndef BM_CLI_TRAIN_SERVER_REPORT_H
#define BM_CLI_TRAIN_SERVER_REPORT_H

#include "bmuf/trainer.h"
#include "core/log.h"

/* Nothing if the strategy has none. `quiet`: no line. */
void bm_service_tell(bm_journal *j, const bm_block_report *r, bool quiet);

#endif
