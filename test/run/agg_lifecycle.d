//@ engine: interp,kernel,inproc
/* The end prints only aggregations that changed after they were printed. */
#pragma D option quiet

BEGIN { @shown = count(); @left["k"] = count(); @typed[1, 2] = sum(3); printa("%@d\n", @shown); exit(0); }
END { @late = count(); }
