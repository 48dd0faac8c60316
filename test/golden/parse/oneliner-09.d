//@ cmd: -d parse
io:::start { @[execname] = quantize(args[0]->b_bcount); }
