//@ engine: interp,kernel,inproc
//@ covers: for while do break continue looplimit
/* Loops, alone and inside each other; an endless loop faults. */
#pragma D option quiet

BEGIN
{
	for (this->i = 0; this->i < 4; this->i++) {
		if (this->i == 1)
			continue;
		printf("i %d\n", this->i);
		@a[this->i] = count();
	}
	do {
		x++;
		if (x > 5)
			break;
	} while (x < 100);
	printf("x %d\n", x);
	for (i = 0; i < 4; i++)
		for (j = 0; j < i; j++) {
			total += i * j;
			arr[i, j] = i;
		}
	printf("%d %d\n", total, arr[3, 2]);
	this->s = "a,b,c";
	for (this->t = strtok(this->s, ","); this->t != NULL; this->t = strtok(NULL, ","))
		printf("[%s]", this->t);
	printf("\n");
	for (;;)
		if (++y == 7)
			break;
	while (y-- > 5)
		printf("y %d\n", y);
}

BEGIN { while (1) z++; }
ERROR { printf("fault %d after %d rounds\n", arg4, z); }
BEGIN { exit(0); }
