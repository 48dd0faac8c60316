//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 08; y = 0129; z = 017; }
