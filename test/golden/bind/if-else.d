//@ cmd: -d bind
BEGIN
{
	x = 1;
	if (x > 0)
		trace(1);
	else if (execname == "sh") {
		this->y = x;
		trace(this->y);
	} else
		exit(x);
}
