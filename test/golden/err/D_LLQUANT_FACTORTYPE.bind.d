//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(1, pid, 0, 6, 20); }
