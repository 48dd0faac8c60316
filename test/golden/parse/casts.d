//@ cmd: -d parse
typedef struct thing { int a; } thing_t;
int count_t;

BEGIN
{
	x = (int)a;
	x = (unsigned long long)a - 1;
	x = (thing_t *)a;
	x = ((thing_t *)a)->a;
	x = (thing_t)-a;
	x = (uint64_t)(a + b) / 2;
	x = (uint64_t)-1;
	x = (not_a_type) - 1;
	x = (count_t) * 2;
	x = (some_unknown *)p;
	x = (some_unknown)p;
	x = (some_unknown **)p == (void *)0;
	x = (a * b) + (a) * b;
	x = (struct task_struct *)curthread;
	x = (struct vmlinux`task_struct *)curthread;
	x = (vmlinux`pid_t)a;
	x = (vmlinux`struct list_head *)a;
	x = (const char *)a;
	x = (char *const *)a;
	x = (int (*)(int, char *))a;
	x = (int *[4])a;
	x = (string)a;
	x = (uint32_t const *)a;
	x = (unsigned)a;
	x = (long)(int)(short)(char)a;
	x = !(int)a;
	x = (self->a) + (this->b) * 2;
	x = (a) ? (b) : (c);
	x = (int)a == -1 && (a)++ == 3;
}
