//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(1); while (x < 3) { x++; y; } trace(2); for (i = 0; i < 3; i++) { trace(i); } do { x } while (1); return; }
