//@ cmd: -d parse
//@ err
//@ exit: 1
unsigned string s;
signed struct foo t;
unsigned float f;
