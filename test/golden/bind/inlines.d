//@ cmd: -d bind
inline int limit = 3 * 4;
inline int plus[int a, int b] = a + b;
inline string who = execname;
BEGIN
/limit > 5/
{
	trace(plus[limit, plus[pid, 2]]);
	trace(who);
}
