//@ cmd: -e -d jit
/* Keys are the agent's business, and so is memory that is not proven. */
int n[int];

tick-1s
{
	n[0] += 3;
	@[n[0]] = sum(arg0 / (n[0] & 7));
}
