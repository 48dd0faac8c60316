//@ cmd: -e -d jit -x bufsize=64k
/* A record: the agent is asked only where the ring is full or ends. */
tick-1s
{
	trace(arg0);
}
