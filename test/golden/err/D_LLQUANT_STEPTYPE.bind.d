//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 1; @ = llquantize(1, 10, 0, 5, x); }
