//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { ustack(0); }
