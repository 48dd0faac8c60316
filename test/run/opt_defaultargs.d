//@ engine: interp,kernel,inproc
//@ cmd: -q -x defaultargs -s %s 5
BEGIN { printf("%d %d [%s]\n", $1, $2, $$3); exit(0); }
