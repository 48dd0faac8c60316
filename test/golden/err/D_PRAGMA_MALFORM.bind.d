//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option
BEGIN { }
