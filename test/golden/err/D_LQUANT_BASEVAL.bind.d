//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = lquantize(1, 3000000000, 10, 1); }
