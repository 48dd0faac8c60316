//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(1); }
/* never closed
