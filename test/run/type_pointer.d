//@ engine: interp,kernel,inproc
/* Pointers into D's own memory: alloca(), bcopy(), arithmetic. */
#pragma D option quiet
struct node { int v; struct node *next; };
struct node *np;

BEGIN
{
	this->p = (int *)alloca(16);
	this->p[0] = 10; this->p[1] = 20; *(this->p + 2) = 30; this->p[3] = this->p[0] + this->p[1];
	printf("%d %d %d %d\n", *this->p, this->p[1], this->p[2], *(this->p + 3));
	this->q = this->p + 2;
	printf("%d %d %d\n", this->q - this->p, *this->q, this->q[-1]);
	this->q++; printf("%d\n", *this->q);
	this->q -= 3; printf("%d %d\n", *this->q, this->q == this->p);
	printf("%d %d\n", this->p < this->p + 1, (long)(this->p + 1) - (long)this->p);
	*this->p += 5; (*this->p)++; printf("%d\n", *this->p);

	this->s = (char *)alloca(12);
	bcopy("hello world", this->s, 12);
	printf("%s %c %s\n", stringof(this->s), *(this->s + 4), stringof(this->s + 6));
	this->s[5] = 0; printf("%s\n", stringof(this->s));
	this->d = (char *)alloca(4);
	bcopy(this->s + 1, this->d, 3); this->d[3] = '\0';
	printf("%s\n", stringof(this->d));

	this->n = (struct node *)alloca(2 * sizeof(struct node));
	this->n->v = 1; this->n->next = this->n + 1; (*(this->n + 1)).v = 2; this->n[1].next = NULL;
	printf("%d %d %d\n", this->n->v, this->n->next->v, this->n->next->next == NULL);
	printf("%d\n", (int)((long)(this->n + 1) - (long)this->n));
	printf("%d %d\n", np == NULL, np == 0);
	exit(0);
}
