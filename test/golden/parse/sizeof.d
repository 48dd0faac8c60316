//@ cmd: -d parse
typedef int counter_t;
BEGIN
{
	x = sizeof (int);
	x = sizeof (counter_t) * 2;
	x = sizeof (unsigned char[16]);
	x = sizeof (struct task_struct *);
	x = sizeof x;
	x = sizeof (x);
	x = sizeof (x).y->z;
	x = sizeof *p;
	x = sizeof (unknown *);
	x = sizeof -1 + 2;
	x = sizeof sizeof 1;
	x = offsetof(struct task_struct, comm);
	x = offsetof(thread_t, string);
	s = stringof(p);
	s = stringof p->name;
	s = stringof (p)->name;
	s = stringof ((char *)p + 1);
}
