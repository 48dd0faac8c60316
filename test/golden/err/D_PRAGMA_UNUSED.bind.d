//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D binding "1.5" trace more
BEGIN { exit(0); }
