//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(1, 10, -1, 5, 10); }
