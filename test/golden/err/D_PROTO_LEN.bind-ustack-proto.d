//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { ustack(1, 2, 3); }
