//@ engine: interp,kernel,inproc
//@ covers: %ws-%ls
#pragma D option quiet
struct named { int32_t name[8]; };
BEGIN
{
	this->n = (struct named *)alloca(sizeof (struct named));
	this->n->name[0] = 'h'; this->n->name[1] = 0xe9; this->n->name[2] = 0x20ac; this->n->name[3] = 0x1f600; this->n->name[4] = 0;
	printf("[%ws] [%ls] [%8ws]\n", this->n->name, this->n->name, this->n->name);
	printf("[%ws] [%ls] [%-6ws]\n", "plain", execname == "" ? "" : "text", "left");
	exit(0);
}
