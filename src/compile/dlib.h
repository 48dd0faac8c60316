/* The D files of dlib/. `#pragma D depends_on library` in a file names the files that must be read
 * before it. */
#ifndef DESCRY_COMPILE_DLIB_H
#define DESCRY_COMPILE_DLIB_H

#include "base/embedded.h"

extern const struct embedded_file dlib_files[];

#endif
