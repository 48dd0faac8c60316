//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = lquantize(1, 0, 100000, 1); }
