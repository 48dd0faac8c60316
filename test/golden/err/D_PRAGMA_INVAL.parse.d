//@ cmd: -d parse
//@ err
//@ exit: 1
#pragma D nonsense here
#pragma D
BEGIN { }
