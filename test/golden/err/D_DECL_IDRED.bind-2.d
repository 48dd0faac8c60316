//@ cmd: -d bind
//@ err
//@ exit: 1
int pid;
BEGIN { trace(1); }
