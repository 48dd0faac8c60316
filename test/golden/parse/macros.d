//@ root
//@ cmd: -d parse -p 1 -s %s -- 42 -7 name 0x10 tick
profile:::$5-1s,
pid$1:::entry,
pid$target$1:a$3::entry
/pid == $target && uid == $uid || $1 == $2/
{
	x = $1 + $2;
	x = $2;
	x = $3;
	x = x->$3;
	x = $4;
	s = $$1;
	s = $$3;
	s = $$target;
	s = $0;
	printf("%s" $$1, "x");
	$3++;
}
