//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(stringof(trace(0))); }
