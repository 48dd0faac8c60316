//@ engine: interp,kernel,inproc
/* An aggregation with too many keys drops new keys and keeps its old keys. */
//@ err
//@ sub: /^descry: script .*\n//
//@ sub: /^descry: \d+ aggregation drops? on CPU \d+/descry: N aggregation drops on CPU C/
#pragma D option quiet
#pragma D option aggsize=256

BEGIN
{
	@a[1] = sum(1); @a[2] = sum(2); @a[3] = sum(3); @a[4] = sum(4); @a[5] = sum(5); @a[6] = sum(6); @a[7] = sum(7); @a[8] = sum(8);
	@a[11] = sum(1); @a[12] = sum(2); @a[13] = sum(3); @a[14] = sum(4); @a[15] = sum(5); @a[16] = sum(6); @a[17] = sum(7);
	@a[21] = sum(1); @a[22] = sum(2); @a[23] = sum(3); @a[24] = sum(4); @a[25] = sum(5); @a[26] = sum(6); @a[27] = sum(7);
	@a[1] = sum(100);
	trunc(@a, 1);
	printa("%d %@d\n", @a);
	exit(0);
}
