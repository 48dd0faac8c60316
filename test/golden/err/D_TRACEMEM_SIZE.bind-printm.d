//@ cmd: -x errtags -d bind
//@ exit: 1
//@ err
BEGIN { n = 3; printm(n, memref(arg0, 3)); }
BEGIN { printm(0, memref(arg0, 3)); }
