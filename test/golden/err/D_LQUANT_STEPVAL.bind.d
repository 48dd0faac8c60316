//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = lquantize(1, 0, 10, 3000000000); }
