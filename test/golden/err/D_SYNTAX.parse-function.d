//@ cmd: -d parse
//@ err
//@ exit: 1
int f(int a) { a = ; return 1; }
int g(int a) { if (a { return 1; } return 2; }
int m(int a, ...) { return 1; }
void n(void) { while (1 { x++; } }
BEGIN { x = f(1); while () z++; }
BEGIN { do x++; while (x < 3) y = 1; }
