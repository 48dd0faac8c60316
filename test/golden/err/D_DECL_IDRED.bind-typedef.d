//@ cmd: -d bind
//@ err
//@ exit: 1
typedef int number;
typedef char number;
BEGIN { exit(0); }
