//@ cmd: -q
//@ engine: kernel
/* User stacks as keys, as actions, and of another program's probes, before every verifier. */
syscall::getpid:entry { @a[execname, pid, ustack(), stack()] = count(); }
BEGIN { @b[ustack(20)] = count(); }
tick-10ms { @c[ustack()] = count(); n++; }
tick-100ms { exit(0); }
END { trunc(@a); trunc(@b); trunc(@c); printf("%s\n", n > 2 ? "loaded" : "no tick"); }
