//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = lquantize(1, 0, 3000000000, 1); }
