//@ engine: interp,kernel,inproc
/* trace() without quiet: columns by size and sign. */
//@ sub: /^ +\d+( +1 )/CPU\1/
char c;
unsigned char uc;
short s;
unsigned short us;
int i;
unsigned int ui;
long l;
unsigned long ul;
struct pt { char a; char b; char c; };
struct pt p;

BEGIN { c = -5; s = -5; i = -5; l = -5; uc = 5; us = 5; ui = 5; ul = 5; }
BEGIN { trace(c); trace(s); trace(i); trace(l); }
BEGIN { trace(uc); trace(us); trace(ui); trace(ul); }
BEGIN { trace("text"); trace(execname); trace(probename); }
BEGIN { trace(1); trace("x"); trace(2L); }
BEGIN { printf("printf %d", 3); }
BEGIN { }
BEGIN { i++; }
BEGIN { exit(0); }
