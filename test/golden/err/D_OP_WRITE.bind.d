//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { pid = 1; }
