//@ cmd: -d bind
int declared;
self string name;
this uint8_t small;
int array[4];
BEGIN
{
	implicit = 5000000000;
	declared = implicit;
	self->name = execname;
	self->name = 0;
	this->small = 300;
	array[2] = this->small;
	assoc[pid, "key"] = timestamp;
	self->seen[execname]++;
	total += 2;
	declared++;
}
END
/assoc[0, "key"] != 0 && self->name == "sh"/
{
	trace(assoc[1, execname]);
}
