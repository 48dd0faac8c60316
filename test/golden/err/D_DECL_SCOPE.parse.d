//@ cmd: -d parse
//@ err
//@ exit: 1
int mod`x;
struct ok { int m`x; };
enum { m`A };
