/* kaldi_directory.h - the data directory of two utterances that tests change. */
#ifndef BM_TESTS_IO_IMPORT_KALDI_DIRECTORY_H
#define BM_TESTS_IO_IMPORT_KALDI_DIRECTORY_H

#include "tests/support/folder.h"

#include <sys/stat.h>
#include <unistd.h>

static inline void make_directory(void)
{
    (void)mkdir(in_folder("data"), 0777);
    unlink(in_folder("data/segments"));
    unlink(in_folder("data/feats.scp"));
    write_text("data/text", "u1 one two\nu2 three\n");
    write_text("data/utt2spk", "u1 ann\nu2 bob\n");
}

#endif
