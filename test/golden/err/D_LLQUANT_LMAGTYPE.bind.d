//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 3; @ = llquantize(1, 10, x, 5, 10); }
