//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(*(int (*)(int))0); }
