//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 1; @ = lquantize(1, 0, x, 1); }
