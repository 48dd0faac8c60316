//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option version=9.9
BEGIN { x = pid; }
