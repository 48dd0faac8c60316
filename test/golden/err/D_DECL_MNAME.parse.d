//@ cmd: -d parse
//@ err
//@ exit: 1
struct a { int; };
