//@ cmd: -d parse
//@ err
//@ exit: 1
struct a { int 3; int b; char };
struct { int x } y;
enum { A B };
struct ;
BEGIN { trace(1); }
