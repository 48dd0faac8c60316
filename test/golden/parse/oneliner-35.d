//@ cmd: -d parse
BEGIN { printf("%Y %a\n", walltimestamp, 0); exit(0); }
