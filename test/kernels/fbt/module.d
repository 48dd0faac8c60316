/* Functions of a module, with its own types. */
//@ fbt: fentry, kprobe
//@ c: sh -c "cat /proc/net/dev >/dev/null"
//@ cmd: -q
fbt:dummy:dummy_get_stats64:entry
/pid == $target || progenyof($target)/
{
	@calls[probemod, probefunc, probename, stringof(args[0]->name), (uint64_t)args[1] == arg1 && arg1 != 0] = count();
}

fbt:dummy:dummy_get_stats64:return
/pid == $target || progenyof($target)/
{
	@calls[probemod, probefunc, probename, "", arg0 == 0] = count();
}
