//@ cmd: -d bind
//@ err
//@ exit: 1
struct none { int a[0]; };
BEGIN { print((struct none *)alloca(8)); }
