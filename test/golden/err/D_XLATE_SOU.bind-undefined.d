//@ cmd: -d bind
//@ err
//@ exit: 1
translator struct no_such < int i > { a = i; };
BEGIN { trace(1); }
