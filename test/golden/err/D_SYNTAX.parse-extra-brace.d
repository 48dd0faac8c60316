//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(1); } }
END { trace(2); }
