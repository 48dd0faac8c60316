//@ cmd: -d parse
syscall:::entry { self->v = vtimestamp; } syscall:::return /self->v/ { @[probefunc] = sum(vtimestamp - self->v); self->v = 0; }
