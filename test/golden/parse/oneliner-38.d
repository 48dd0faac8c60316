//@ cmd: -d parse
BEGIN { @l["x"] = llquantize(12345, 10, 0, 6, 20); exit(0); }
