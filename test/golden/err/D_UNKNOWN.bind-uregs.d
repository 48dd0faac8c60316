//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(uregs[99]); }
