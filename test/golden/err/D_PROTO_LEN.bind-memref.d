//@ cmd: -x errtags -d bind
//@ exit: 1
//@ err
BEGIN { printm(16, memref(arg0)); }
BEGIN { printt(16, typeref(arg0, 1, "int")); }
BEGIN { printm(16); }
