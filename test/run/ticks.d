//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN { printf("begin\n"); }
tick-20ms { printf("tick %d\n", ++n); }
tick-20ms /n == 3/ { exit(5); }
END { printf("end %d\n", n); }
//@ exit: 5
