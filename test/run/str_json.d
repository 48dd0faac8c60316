//@ engine: interp,kernel,inproc
//@ covers: json
/* json(): members, elements, nested ones; a missing one is "". */
#pragma D option quiet

BEGIN
{
	this->s = "{\"a\": 1, \"b\": {\"c\": [10, {\"d\": \"x,y\"}, true, []]}, \"e\": null, \"ab\": -2.5e3}";
	printf("[%s] [%s] [%s] [%s]\n", json(this->s, "a"), json(this->s, "e"), json(this->s, "ab"),
	    json(this->s, "b.c[1].d"));
	printf("[%s] [%s] [%s]\n", json(this->s, "b.c[2]"), json(this->s, "b.c"), json(this->s, "b"));
	printf("[%s] [%s] [%s] [%s] [%s]\n", json(this->s, "c"), json(this->s, "b.c[9]"),
	    json(this->s, "a.b"), json(this->s, "b[0]"), json("no json", "a"));
}
BEGIN
{
	printf("[%s] [%s] [%s]\n", json("[1,[2,3]]", "[1][0]"), json("[1,[2,3]]", "[1]"),
	    json("{\"q\":\"a\\\"b\"}", "q"));
	printf("[%s] [%s]\n", json("{\"ab\":{\"a\":5},\"a\":{\"b\":7}}", "a.b"),
	    json("{\"a\":[{\"q\":1},{\"q\":2}]}", "a[1].q"));
	exit(0);
}
