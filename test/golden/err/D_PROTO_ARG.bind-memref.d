//@ cmd: -x errtags -d bind
//@ exit: 1
//@ err
BEGIN { printm(16, 5); }
BEGIN { printt(16, memref(0, 4)); }
BEGIN { printt(16, typeref(arg0, 0, "int", 4)); }
BEGIN { printt(16, typeref(arg0, 1, execname, 4)); }
BEGIN { x = typeref(arg0, 1, "int", 4); }
BEGIN { trace(memstr(execname, 32, 16)); }
BEGIN { trace(getf(execname)); }
