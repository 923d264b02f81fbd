/* old.c - a plugin that another version of the program came with. */
#include "compute/plugin.h"

const bm_plugin bm_plugin_old = {.abi = BM_PLUGIN_ABI - 8};
