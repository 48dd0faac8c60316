//@ cmd: -d parse
//@ err
//@ exit: 1
long string s;
long struct foo t;
short double d;
