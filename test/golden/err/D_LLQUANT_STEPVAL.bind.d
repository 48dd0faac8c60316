//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = llquantize(1, 10, 0, 5, 7); }
