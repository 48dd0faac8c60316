//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace("abc);
	trace(2); }
END { printf("x
y"); }
