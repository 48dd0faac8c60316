//@ cmd: -d parse
//@ err
//@ exit: 1
long char c;
short char d;
BEGIN { trace((long char)1); }
