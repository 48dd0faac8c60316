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
	printf("[%s] %d\n", strtok("no delimiter", "|"), strtok(NULL, "|") == NULL);
	printf("%d %d\n", strtok("", " ") == NULL, strtok(";;;", ";") == NULL);
	printf("%s\n", s);
	exit(0);
}
