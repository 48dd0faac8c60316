//@ cmd: -d bind
//@ err
//@ exit: 1
int x; enum e { A = x };
