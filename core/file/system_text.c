#include "core/file/system_text.h"

#include <fcntl.h>
#include <unistd.h>

bool bm_system_text(const char *path, char *out, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, out, room - 1) : -1;

    if (file >= 0)
        close(file);
    if (n < 0)
        return false;
    if (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return true;
}
