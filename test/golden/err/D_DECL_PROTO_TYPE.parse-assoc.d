//@ cmd: -d bind
//@ err
//@ exit: 1
extern int open_ended[];
int f(int a[int]);
BEGIN { exit(0); }
