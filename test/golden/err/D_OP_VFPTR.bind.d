//@ cmd: -d bind
//@ err
//@ exit: 1
void *p;
BEGIN { p++; p += 2; s = "a"; s -= curthread; }
