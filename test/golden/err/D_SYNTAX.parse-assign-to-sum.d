//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { a + b = 3; (int)a = 4; a ? b : c = 5; (a) = 6; *a = 7; }
