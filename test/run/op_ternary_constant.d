//@ engine: interp,kernel,inproc
//@ cmd: -qs %s 1 0
//@ covers: ?:
/* A constant condition chooses its operand before the compiler checks the other. */
inline int QUIET = 0;
inline int LOUD = !QUIET;
inline string NAME = "n";

BEGIN
{
	QUIET ? printf("%d ", timestamp) : 1;
	LOUD ? printf("loud\n") : 1;
	$1 ? printf("one\n") : printf("not one\n");
	$2 ? printf("two\n") : trace("not two\n");
	$2 ? $1 ? exit(1) : 0 : printf("inner\n");
	@a["key"] = count();
	LOUD ? printa("%s %@d\n", @a) : printa(@none);
	QUIET ? @a[1, 2] = count() : 1;
	x = $1 ? 7 : no_such_variable;
	printf("%d %s\n", x, LOUD && QUIET ? 5 : NAME);
	LOUD ? clear(@a) : 0;
	/* the type is the chosen operand's */
	printf("%d\n", sizeof ($1 ? (char)1 : 1LL));
}

BEGIN
/LOUD ? x == 7 : no_such_function()/
{
	exit($2 ? 1 : 0);
}
