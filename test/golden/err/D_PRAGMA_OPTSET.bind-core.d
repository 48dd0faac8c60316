//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option core
#pragma D option Core=1
BEGIN { exit(0); }
