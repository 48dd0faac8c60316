//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(1, 1, 0, 3, 10); }
