//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { a[1] = 2; trace(a); }
