//@ cmd: -d parse
//@ err
//@ exit: 1
int int x;
char int y;
struct a struct b z;
long long long u;
BEGIN { trace(1); }
