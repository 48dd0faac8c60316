//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma error hello there
BEGIN { }
