/* server_report.h - reports a block's traffic between workers and the parameter
 * server: the event "server" of the journal, and a line of the log. */
#ifndef BM_CLI_TRAIN_SERVER_REPORT_H
#define BM_CLI_TRAIN_SERVER_REPORT_H

#include "bmuf/trainer/trainer.h"
#include "core/log.h"

/* No-op if the strategy has no server. `quiet`: no line in the log. */
void bm_report_server(bm_journal *j, const bm_block_report *r, bool quiet);

#endif
