//@ cmd: -d parse
//@ sub: /(cast int\n +ident arg0\n +|call progenyof\n +|!=\n +ident pid\n +)int \d+( based)?$/\1int PID/
#pragma D option destructive
#pragma D option quiet

syscall::kill:entry
/(int)arg0 == 2 && progenyof(1)/
{
	stop();
	system("ps -p %d; kill -CONT %d", pid, pid);
	freopen("/tmp/out.%s", execname);
	raise(9);
	copyoutstr("hidden", arg1, 7);
	copyout(&`jiffies, arg1, sizeof (uint64_t));
	tracemem(copyin(arg0, 64), 64);
	this->b = (char *)alloca(16); bcopy(copyin(arg1, 16), this->b, 16); this->b[15] = '\0';
	trace(stringof(this->b)); exit(3);
}
