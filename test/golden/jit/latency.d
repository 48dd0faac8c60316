//@ cmd: -e -d jit
/* The clock, a thread's variable and an aggregation are written out: no call of the agent. */
BEGIN
{
	self->ts = timestamp;
}

END
/self->ts/
{
	@ = quantize(timestamp - self->ts);
	self->ts = 0;
}
