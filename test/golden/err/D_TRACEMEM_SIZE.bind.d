//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { tracemem(alloca(10), pid); }
