//@ cmd: -d bind
//@ err
//@ exit: 1
enum big { top = 2147483647, above };
BEGIN { trace(top); }
