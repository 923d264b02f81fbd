/* old.c - a plugin with the ABI of another version. */
#include "compute/plugin.h"

const bm_plugin bm_plugin_old = {.abi = BM_PLUGIN_ABI - 8};
