//@ engine: interp,kernel,inproc
/* No body and an empty body: the probe's line only. */
//@ sub: /^ +\d+( +\d+ )/CPU\1/
BEGIN { }
BEGIN { exit(0); }
END { trace("end"); }
