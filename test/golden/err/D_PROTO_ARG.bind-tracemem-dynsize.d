//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { tracemem(alloca(8), 8, "x"); }
