//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(*alloca(1)); }
