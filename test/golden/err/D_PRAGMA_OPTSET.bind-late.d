//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option cpppath=/bin/cpp
BEGIN { exit(0); }
