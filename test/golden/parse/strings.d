//@ cmd: -d parse
BEGIN
{
	this->s = strjoin(strjoin(basename("/a/b"), ":"), lltostr(12));
	this->n = strlen(this->s) > 3 && this->s < "zzz" && strstr(this->s, "b") != NULL;
	trace(substr(this->s, 1, 2)); trace(index(this->s, "b"));
	trace(json("{\"a\": [1, {\"b\": 2}]}", "a[1].b"));
	trace(inet_ntop(2, alloca(4)));
	printf("%-*.*s|%5.2d|%#llx|%c\n", 10, 3, this->s, 7, 0xffULL, 'x');
}
