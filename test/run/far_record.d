//@ engine: interp,kernel,inproc
//@ cmd: -q -x scratchsize=1m -x bufsize=16m -s %s
/* Fields of a record behind much traced memory: their offsets exceed 16 bits. */
BEGIN { x = (char *)alloca(70000); x[0] = 'a'; tracemem(x, 65600, 8); trace(12345); printf(" %d %s\n", 6789, "text"); }
BEGIN { x = (char *)alloca(70000); x[0] = 'b'; tracemem(x, 40000, 8); trace(12346); printf(" %d %s\n", 6790, "text"); }
BEGIN { x = (char *)alloca(70000); x[0] = 'c'; tracemem(x, 32760, 8); trace(12347); printf(" %d %s\n", 6791, "text"); exit(0); }
