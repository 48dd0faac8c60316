//@ engine: interp,kernel,inproc
/* timestamp does not change within a firing; it grows from BEGIN to END. */
#pragma D option quiet

BEGIN { this->t = timestamp; start = timestamp; this->w = walltimestamp; }
BEGIN { printf("%d\n", this->t == timestamp); printf("%d\n", this->w <= walltimestamp); exit(0); }
END { printf("%d %s\n", timestamp > start, probename); }
