//@ engine: interp,kernel,inproc
//@ as: dtrace
//@ env: _DTRACE_TESTING=1
/* A speculation without data shows after commit() that its probe fired; speculation 0 does not. */
BEGIN { self->s = speculation(); }
BEGIN /self->s/ { speculate(self->s); }
BEGIN { speculate(77); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
