//@ cmd: -d bind
//@ err
//@ exit: 1
void *p;
BEGIN { trace(p + 1); trace(p[1]); }
