//@ engine: interp,kernel,inproc
//@ covers: function for while speculation
/* Functions, loops, records, faults and speculations in and around one another. */
#pragma D option quiet
struct s { int a; string t; };
int noisy(int n) { printf("noisy %d\n", n); @c[n] = count(); return n + 1; }
string pick(int n) { if (n == 0) return "zero"; else if (n == 1) return "one"; return lltostr(n); }
int find(int what)
{
	for (this->f = 0; this->f < 8; this->f++) {
		if (arr[this->f] == what)
			return this->f;
	}
	return -1;
}
BEGIN
{
	for (this->i = 0; this->i < 8; this->i++)
		arr[this->i] = this->i * this->i + 1;
	printf("found %d %d\n", find(17), find(3));
	printf("nested %d\n", noisy(noisy(1)));
	x = noisy(5) + noisy(6);
	printf("%d %s %s %s\n", x, pick(0), pick(1), pick(2));
	self->n = 3;
	while (self->n-- > 0)
		@a[pick(self->n), execname] = sum(self->n);
	this->p = (char *)alloca(8);
	for (this->j = 0; this->j < 7; this->j++)
		this->p[this->j] = 'a' + this->j;
	printf("%s\n", stringof(this->p));
	s = speculation();
}
BEGIN { speculate(s); for (this->i = 0; this->i < 2; this->i++) printf("spec %d\n", this->i); }
BEGIN { commit(s); }
BEGIN { for (this->i = 0; this->i < 3; this->i++) { printf("d %d\n", 10 / (2 - this->i)); } }
ERROR { printf("error %d\n", arg4); }
END { for (k = 3; k; k--) printf("%d ", k); printf("\n"); }
BEGIN { exit(pick(3) == "3" ? 0 : 1); }
