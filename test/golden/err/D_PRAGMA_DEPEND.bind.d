//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D depends_on provider nosuch
BEGIN { exit(0); }
