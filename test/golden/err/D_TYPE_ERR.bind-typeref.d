//@ cmd: -x errtags -d bind
//@ exit: 1
//@ err
BEGIN { printt(16, typeref(arg0, 1, "struct nowhere", 4)); }
