//@ cmd: -d parse
//@ err
//@ exit: 1
#error this is wrong
#pragma error and this
BEGIN { }
