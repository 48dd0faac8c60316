//@ cmd: -d parse
sched:::off-cpu { self->t = timestamp; } sched:::on-cpu /self->t/ { @[execname, ustack()] = sum(timestamp - self->t); self->t = 0; }
