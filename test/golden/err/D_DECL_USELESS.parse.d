//@ cmd: -d parse
//@ err
//@ exit: 1
int;
extern int;
typedef int;
BEGIN { }
