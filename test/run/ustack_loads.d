//@ cmd: -q
//@ engine: kernel
/* User stacks as keys, as actions, and of another program's probes; every verifier must accept them. */
syscall::getpid:entry { @a[execname, pid, ustack(), stack()] = count(); }
BEGIN { @b[ustack(20)] = count(); }
tick-10ms { @c[ustack()] = count(); n++; }
tick-100ms /n > 2/ { exit(0); }
END { trunc(@a); trunc(@b); trunc(@c); printf("loaded\n"); }
