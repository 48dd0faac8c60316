//@ cmd: -d parse
sdt:::  { @[probename] = count(); } tick-1s { exit(0); }
