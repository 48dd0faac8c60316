//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { int x; x = 1; }
