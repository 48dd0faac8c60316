//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D depends_on library io.d
BEGIN { exit(0); }
