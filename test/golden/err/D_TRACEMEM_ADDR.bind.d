//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { tracemem("x", 10); }
