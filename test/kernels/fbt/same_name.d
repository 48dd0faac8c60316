/* Static functions of one name in several files are one probe with several places. */
//@ c: sh -c "cat /proc/version /proc/self/status >/dev/null"
//@ cmd: -q
//@ sub: /\+0x[0-9a-f]+//
fbt::proc_single_open:entry
/execname == "cat"/
{
	@[stack(1)] = count();
}
