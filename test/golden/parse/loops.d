//@ cmd: -d parse
int twice(int n) { return 2 * n; }
BEGIN { for (;;) { break; } do { x++; } while (x < 3); while (x) x--; }
