//@ cmd: -d parse -p 1
#pragma D option quiet
syscall::mmap:return /pid == $target/ { self->ptr = arg1; self->depth = 10; printf("%*s <- %s syscall\n", self->depth, "", probefunc); }
pid$target:::entry /self->ptr/ { self->depth++; printf("%*s -> %s`%s\n", self->depth, "", probemod, probefunc); }
pid$target:::return /self->ptr/ { printf("%*s <- %s`%s\n", self->depth, "", probemod, probefunc); self->depth--; }
syscall::munmap:entry /arg0 == self->ptr/ { self->depth++; printf("%*s -> %s syscall\n", self->depth, "", probefunc); self->ptr = 0; self->depth = 0; exit(0); }
