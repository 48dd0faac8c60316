//@ cmd: -e
//@ err
//@ exit: 1
int one(int n) { while (n > 0) n--; return n; }
int four(int n) { return one(n) + one(n) + one(n) + one(n); }
int sixteen(int n) { return four(n) + four(n) + four(n) + four(n); }
int many(int n) { return sixteen(n) + sixteen(n) + sixteen(n) + sixteen(n); }
BEGIN { x = many(1) + many(2) + many(3) + many(4); exit(0); }
