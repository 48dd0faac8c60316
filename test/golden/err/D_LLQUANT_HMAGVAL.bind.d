//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(1, 10, 6, 0, 20); }
