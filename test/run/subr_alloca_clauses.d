//@ cmd: -q
//@ engine: interp,inproc,kernel
//@ covers: alloca this
/* Memory that a this-> pointer keeps from one clause to the next. */
struct two { short a; short b; int c; };
BEGIN { this->p = (struct two *)alloca(sizeof(struct two)); this->p->a = 7; this->p->b = 9; this->n = 1; }
BEGIN /this->n == 1/ { printf("%d %d\n", this->p->a, this->p->b); this->q = (char *)alloca(4); this->q[0] = 'x'; }
BEGIN /this->p->b == 9/ { printf("%d %c\n", this->p->a, this->q[0]); }
/* A clause that takes its own memory begins anew when nothing is kept behind it. */
BEGIN { g = (char *)alloca(1); *g = 'a'; }
BEGIN { h = (char *)alloca(1); *h = 'b'; printf("%d\n", g == h); exit(0); }
