//@ engine: interp,kernel,inproc
//@ cmd: -q
BEGIN
{
	x = 3;
	if (x > 2) {
		printf("big\n");
		if (x == 3)
			printf("three\n");
		else
			printf("not three\n");
	} else {
		printf("small\n");
	}
	if (x == 1)
		printf("one\n");
	else if (x == 2)
		printf("two\n");
	else
		printf("many\n");
	exit(0);
}
