//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(pid, 10, 0, 6, 0); }
