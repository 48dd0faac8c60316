//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(1) trace(2); trace(3); }
END { x = ; y = 1 }
