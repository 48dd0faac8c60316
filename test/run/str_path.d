//@ engine: interp,kernel,inproc
/* basename() and dirname() as basename(1) and dirname(1) print. */
#pragma D option quiet

BEGIN
{
	printf("%s %s\n", basename("/foo/bar/baz"), dirname("/foo/bar/baz"));
	printf("%s %s\n", basename("/foo/bar///baz/"), dirname("/foo/bar///baz/"));
	printf("%s %s\n", basename("/foo/bar/baz//"), dirname("/foo/bar/baz//"));
	printf("%s %s\n", basename("/foo/bar/baz/."), dirname("/foo/bar/baz/."));
	printf("%s %s\n", basename("foo/bar"), dirname("foo/bar"));
	printf("%s %s\n", basename("/foo"), dirname("/foo"));
	printf("%s %s\n", basename("foo"), dirname("foo"));
	printf("%s %s\n", basename("foo/"), dirname("foo/"));
	printf("%s %s\n", basename("/"), dirname("/"));
	printf("%s %s\n", basename("/////"), dirname("/////"));
	printf("%s %s\n", basename("."), dirname("."));
	printf("%s %s\n", basename("./x"), dirname("./x"));
	printf("%s %s\n", basename(""), dirname(""));
	exit(0);
}
