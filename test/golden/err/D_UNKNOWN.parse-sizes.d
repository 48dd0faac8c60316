//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = (long short)1; y = (signed unsigned)2; }
