//@ engine: interp,kernel,inproc
//@ as: dtrace
//@ env: _DTRACE_TESTING=1
/* A speculation that nothing was put into shows, once committed, that its probe fired; one of no number does not. */
BEGIN { self->s = speculation(); }
BEGIN /self->s/ { speculate(self->s); }
BEGIN { speculate(77); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
