//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { return 1; }
