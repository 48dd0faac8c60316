//@ cmd: -q  -x tregs=12
//@ engine: kernel
//@ covers: ucaller ustackdepth
/* A program that uses much of the 512 bytes of stack reads a user stack; every verifier must accept it. */
syscall::getpid:entry
{
	this->a = arg0 + timestamp;
	this->b = this->a * pid + ustackdepth;
	this->c = this->b ^ (uintptr_t)ucaller;
	@a[this->a, this->b, this->c, pid, tid, ppid, uid, gid, arg0, arg1, arg2, cpu] = count();
	@b[pid, tid, ustackdepth, ucaller, arg0, arg1, arg2, arg3, arg4, arg5, this->a, this->b] = sum(this->c + this->b * this->a);
	@c[pid, tid, ustack(7), ustack(3), arg0, arg1, arg2, arg3] = quantize(this->c);
}
tick-10ms { @d[ustack(), ustackdepth, pid, tid, ppid, uid, gid, cpu] = lquantize(pid * tid + cpu, 0, 100, 10); n++; }
tick-100ms /n > 2/ { exit(0); }
END { trunc(@a); trunc(@b); trunc(@c); trunc(@d); printf("%s\n", "loaded"); }
