/* Beyond the sixth, arguments lie on the stack. do_mmap()'s eighth is a pointer to its caller's stack on every kernel. */
//@ c: cat /proc/self/comm
//@ cmd: -q
fbt::do_mmap:entry
/pid == $target/
{
	@[arg7 < 0 && (arg7 & 7) == 0 ? "pointer" : "no pointer", (uint64_t)args[7] == arg7] = count();
	@lengths[args[2] > 0 ? "length" : "no length"] = min(1);
}
