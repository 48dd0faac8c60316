//@ cmd: -d parse
//@ sub: /(cast int\n +ident arg0\n +|call progenyof\n +|!=\n +ident pid\n +)int \d+( based)?$/\1int PID/
#!/usr/sbin/dtrace -qs
/* Counts and times the system calls of programs given by name, every five seconds. */

dtrace:::BEGIN
{
	interval = 5;
	left = interval;
	trace("wait\n");
}

syscall:::entry
/execname != "dtrace" && pid != 1/
{
	self->start = timestamp;
	self->vstart = vtimestamp;
	@n[execname, probefunc] = count();
}

syscall:::return
/self->start/
{
	this->elapsed = timestamp - self->start;
	@t[execname, probefunc] = sum(this->elapsed);
	@v[execname, probefunc] = sum(vtimestamp - self->vstart);
	self->start = 0;
	self->vstart = 0;
}

profile:::tick-1sec
{
	left--;
}

profile:::tick-1sec
/left == 0/
{
	trunc(@n, 10);
	printf("%Y\n", walltimestamp);
	printa("  %-16s %-16s %@8d\n", @n);
	left = interval;
}
