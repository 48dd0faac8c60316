//@ engine: interp,kernel,inproc
/* What was printed is not printed again at the end; what came after is. */
#pragma D option quiet

BEGIN { @shown = count(); @left["k"] = count(); @typed[1, 2] = sum(3); printa("%@d\n", @shown); exit(0); }
END { @late = count(); }
