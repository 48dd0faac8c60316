//@ engine: interp,kernel,inproc
/* if/else in all its shapes; this is illumos's extension. */
#pragma D option quiet
int n, i;

BEGIN
{
	n = 5;
	if (n == 5) { printf("a\n"); }
	if (n != 5) { printf("not\n"); } else { printf("b\n"); }
	if (n < 0) { printf("not\n"); } else if (n > 4) { printf("c\n"); } else { printf("not\n"); }
	if (n < 0) { printf("not\n"); } else if (n > 10) { printf("not\n"); } else { printf("d\n"); }
	if (n) { if (n == 4) { printf("not\n"); } else { printf("e\n"); } printf("f\n"); }
	if (n > 1 && n < 9 || 0) { n = 6; i = n; } else { i = -1; }
	printf("%d %d\n", n, i);
	if (!i) { } else { printf("g\n"); }
	if (n == 6)
		printf("h\n");
	else
		printf("not\n");
	if ("abc" == execname) { printf("not\n"); } else if (execname == "descry") { printf("i\n"); }
	this->x = 0;
	if (n) { this->x = 1; } 
	printf("%d\n", this->x);
}
BEGIN /n == 6/ { if (this->x) { printf("j\n"); exit(3); } }
//@ exit: 3
