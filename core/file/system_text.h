/* system_text.h - short texts of the kernel, in files of /proc and /sys. */
#ifndef BM_CORE_FILE_SYSTEM_TEXT_H
#define BM_CORE_FILE_SYSTEM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* out [room] <- the text of a file, without its last line break. False: it
 * cannot be read. */
bool bm_system_text(const char *path, char *out, size_t room);

#endif
