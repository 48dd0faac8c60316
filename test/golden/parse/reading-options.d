//@ cmd: -d parse
/* Options in the source that change how the rest of it is read. */
#pragma D option defaultargs
BEGIN { trace($1); trace($$2); }
profile:::tick-$3s { }
#pragma D option pspec
unknown_t* { }
#pragma D option pspec=0
unknown_t *x;
