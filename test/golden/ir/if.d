//@ cmd: -d ir
int n;

BEGIN
{
	if (n > 2) {
		printf("more\n");
	} else {
		n++;
	}
}
