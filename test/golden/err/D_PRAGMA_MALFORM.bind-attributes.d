//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D attributes Stable/Stable/Common
BEGIN { exit(0); }
