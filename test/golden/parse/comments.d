//@ cmd: -d parse
// line comment
BEGIN // after the description
/* before the body */ { // in it
	/* a */ x /* b */ = /* c */ 1 /* d */; // e
	y = 4 / 2; z = 4 //* 2
	/ 2;
}
/* between ** stars */
syscall::read:entry/* tight *//x/* in *///* after the predicate */
{ }
