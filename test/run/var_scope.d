//@ engine: interp,kernel,inproc
/* Globals start at 0 and last, this-> lasts through the clauses of a firing, self-> through the thread. */
#pragma D option quiet
int declared;
this int t;

BEGIN { printf("%d\n", declared); }
BEGIN { implicit = 3; declared = 4; self->x = 5; this->t = 6; this->u = "text"; self->str = "kept"; }
BEGIN { printf("%d %d %d %d %s %s\n", implicit, declared, self->x, this->t, this->u, self->str); }
BEGIN { self->x = 0; this->t++; }
BEGIN { printf("%d %d %s\n", self->x, this->t, self->str); exit(0); }
END { printf("%d %d %s\n", implicit, declared, "end"); }
