//@ cmd: -d parse
profile-99 { @[walltimestamp / 1000000000, execname] = lquantize((timestamp % 1000000000) / 1000000, 0, 1000, 10); }
