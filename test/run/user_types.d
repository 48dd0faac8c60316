//@ engine: kernel
//@ c: %t/tracee_types
//@ covers: types-of-the-traced-program
//@ sub: /0x[0-9a-f]+/ADDR/
/* Types by the names the traced program gives them, from its DWARF. */
#pragma D option quiet

pid$target:a.out:look_at:entry
{
	this->s = (struct shape *)copyin(arg0, sizeof (struct shape));
	print(*(struct shape *)copyin(arg0, sizeof (struct shape)));
	printf("%s %d %d %d %d\n", stringof(this->s->name), this->s->in.y, this->s->color == GREEN,
	    this->s->high, this->s->as_bytes[2]);
	this->t = (shape_t *)copyin((uintptr_t)this->s->next, sizeof (shape_t));
	printf("%s %d %s\n", stringof(this->t->name), this->t->n, copyinstr((uintptr_t)this->s->text));
	keep = *this->t;
	printf("%d %d %d\n", keep.n, sizeof (struct user`shape), offsetof(struct tracee_types`shape, in));
	exit(0);
}
