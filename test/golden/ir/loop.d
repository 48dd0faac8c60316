//@ cmd: -e -d ir
BEGIN { for (i = 0; i < 3; i++) x += i; while (x) { if (x == 7) break; x--; } exit(0); }
