//@ cmd: -d parse -p 1
hotspot$target:::gc-begin { self->t = timestamp; } hotspot$target:::gc-end /self->t/ { @ = quantize(timestamp - self->t); }
