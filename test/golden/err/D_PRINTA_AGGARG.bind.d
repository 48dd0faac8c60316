//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { printa("x", 1); }
