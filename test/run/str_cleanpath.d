//@ engine: interp,kernel,inproc
#pragma D option quiet

BEGIN
{
	printf("[%s] [%s]\n", cleanpath("/foo/bar/baz"), cleanpath("/foo//bar///baz"));
	printf("[%s] [%s]\n", cleanpath("/foo/./bar"), cleanpath("/foo/bar/../baz"));
	printf("[%s] [%s]\n", cleanpath("/foo/../bar"), cleanpath("/a/b/../../c"));
	printf("[%s] [%s]\n", cleanpath("/"), cleanpath(""));
	printf("[%s] [%s]\n", cleanpath("/../x"), cleanpath("foo/bar"));
	exit(0);
}
