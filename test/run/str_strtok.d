//@ engine: interp,kernel,inproc
#pragma D option quiet
string s;

BEGIN
{
	s = "  this is;a,,test ";
	this->a = strtok(s, " ;,");
	this->b = strtok(NULL, " ;,");
	this->c = strtok(NULL, " ;,");
	this->d = strtok(NULL, " ;,");
	printf("[%s] [%s] [%s] [%s]\n", this->a, this->b, this->c, this->d);
	printf("%d\n", strtok(NULL, " ;,") == NULL);
	printf("%d\n", strtok(NULL, " ;,") == NULL);
	this->a = strtok("x=1;y=2", "=");
	this->b = strtok(NULL, ";");
	this->c = strtok(NULL, "");
	printf("[%s] [%s] [%s]\n", this->a, this->b, this->c);
	this->a = strtok("k:v;w", ":");
	this->b = strtok(NULL, ";"); /* the search that found a token does not consume the delimiter behind it */
	printf("[%s] [%s] [%s]\n", this->a, this->b, strtok(NULL, "w"));
	printf("[%s] %d\n", strtok("no delimiter", "|"), strtok(NULL, "|") == NULL);
	printf("%d %d\n", strtok("", " ") == NULL, strtok(";;;", ";") == NULL);
	printf("%s\n", s);
}

/* Without a token the result is NULL, which can be compared and stored, but has no text. */
BEGIN { this->n = strchr("abc", 'x'); printf("%d %d\n", this->n == NULL, strrchr("abc", 'x') == "a"); strtok(NULL, "x"); }
BEGIN { printf("%s\n", strtok(NULL, " ")); }
BEGIN { trace(strstr("abc", "x")); }
BEGIN { @[strrchr("abc", 'x')] = count(); }
BEGIN { this->n = strjoin("a", strchr("abc", 'x')); }
BEGIN { strtok(strstr("abc", "x"), ""); }
BEGIN { exit(0); }
ERROR { printf("fault %d at %x\n", arg4, arg5); }
