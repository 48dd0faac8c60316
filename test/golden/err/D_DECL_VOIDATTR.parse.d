//@ cmd: -d parse
//@ err
//@ exit: 1
unsigned void *v;
