//@ cmd: -e -d ir -x engine=inproc
/* A text alone is the key: the agent is asked for its entry before the text is copied. */
BEGIN
{
	@[copyinstr(arg0)] = count();
}
