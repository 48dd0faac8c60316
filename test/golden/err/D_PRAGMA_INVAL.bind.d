//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D nosuch x
BEGIN { }
