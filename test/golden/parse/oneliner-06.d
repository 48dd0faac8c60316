//@ cmd: -d parse
syscall::read:return /arg0 > 0/ { @[execname] = quantize(arg0); }
