//@ engine: interp,kernel,inproc
//@ cmd: -q -x strsize=5 -x rawbytes
/* Every string, from any source, has at most strsize characters; rawbytes prints all of them. */
BEGIN
{
	g = "abcdefgh"; trace(g); trace("literal"); trace(probeprov);
	trace(strjoin("123", "456")); trace(substr("123456789", 2)); trace(g + 2);
	a["k"] = "abcdefgh"; trace(a["k"]); printf("%d\n", strlen(a["k"]));
	exit(0);
}
