//@ cmd: -d parse
//@ err
//@ exit: 1
#include <sys/types.h>
#define X 1
BEGIN { }
