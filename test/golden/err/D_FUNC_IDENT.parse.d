//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x->y(1); (z)(2); `f(3); trace(4)(5); }
