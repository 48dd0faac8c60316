//@ cmd: -d parse -p 1
pid$target::malloc:entry { @[ustack()] = quantize(arg0); }
