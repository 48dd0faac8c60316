//@ engine: interp,kernel,inproc
/* min() and max() compare as int64_t, also unsigned values. */
#pragma D option quiet

BEGIN
{
	@max = max(0xfffffffffffffffe); @max = max(20);
	@min = min(20); @min = min(0xfffffffffffffffe);
	printa("max %@d\n", @max);
	printa("min %@d\n", @min);
	exit(0);
}
