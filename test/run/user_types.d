//@ engine: kernel
//@ c: %t/tracee_types
//@ covers: types-of-the-traced-program
//@ sub: /0x[0-9a-f]+/ADDR/
/* Types of the traced program by their names in its DWARF. */
#pragma D option quiet

pid$target:a.out:look_at:entry
{
	this->s = (struct shape *)copyin(arg0, sizeof (struct shape));
	print(*(struct shape *)copyin(arg0, sizeof (struct shape)));
	printf("%s %d %d %d %d\n", stringof(this->s->name), this->s->in.y, this->s->color == GREEN,
	    this->s->high, this->s->as_bytes[2]);
	this->t = (shape_t *)copyin((uintptr_t)this->s->next, sizeof (shape_t));
	printf("%s %d %s\n", stringof(this->t->name), this->t->n, copyinstr((uintptr_t)this->s->text));
	/* pointers in args[], and pointers read through them, point to the process's memory; curthread to the kernel's */
	print(args[0]->in);
	print(args[0]->name);
	printf("%s %s %d %s %d\n", stringof(args[0]->name), stringof(args[0]->text), args[0]->next->n,
	    args[0]->next->name, strlen(stringof(args[0]->text)));
	printf("%s %d %d\n", strstr(stringof(args[0]->text), "te"), stringof(args[0]->name) == "first",
	    *args[0]->text);
	tracemem(args[0], 8);
	whole = *args[0];
	printf("%d %d %s\n", whole.n, curthread->pid == tid, stringof(curthread->comm));
	@[stringof(args[0]->next->name)] = count();
	keep = *this->t;
	printf("%d %d %d\n", keep.n, sizeof (struct user`shape), offsetof(struct tracee_types`shape, in));
	exit(0);
}
