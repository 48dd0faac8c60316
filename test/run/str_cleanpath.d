//@ engine: interp,kernel,inproc
#pragma D option quiet

BEGIN
{
	printf("[%s] [%s]\n", cleanpath("/foo/bar/baz"), cleanpath("/foo//bar///baz"));
	printf("[%s] [%s]\n", cleanpath("/foo/./bar"), cleanpath("/foo/bar/../baz"));
	printf("[%s] [%s]\n", cleanpath("/foo/../bar"), cleanpath("/a/b/../../c"));
	printf("[%s] [%s]\n", cleanpath("/"), cleanpath(""));
	printf("[%s] [%s]\n", cleanpath("/../x"), cleanpath("foo/bar"));
	printf("[%s] [%s] [%s]\n", cleanpath("a/.."), cleanpath("./a/./"), cleanpath("./"));
	printf("[%s] [%s] [%s]\n", cleanpath("../.././x/.."), cleanpath("a/../../b"), cleanpath("/../../"));
	printf("[%s] [%s] [%s]\n", cleanpath("/a/b/.../..x/."), cleanpath("//"), cleanpath("x/y//../../z/"));
	exit(0);
}
