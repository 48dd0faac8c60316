//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option version=new
BEGIN { x = pid; }
