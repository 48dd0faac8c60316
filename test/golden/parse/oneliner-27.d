//@ cmd: -d parse -p 1
pid$target:a.out::entry { self->t[probefunc] = timestamp; } pid$target:a.out::return /self->t[probefunc]/ { @[probefunc] = max(timestamp - self->t[probefunc]); self->t[probefunc] = 0; }
