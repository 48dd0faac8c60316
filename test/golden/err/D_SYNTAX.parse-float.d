//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 1.5; y = .5; z = 1e3; trace(x); }
