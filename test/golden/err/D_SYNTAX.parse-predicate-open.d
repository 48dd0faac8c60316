//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN /x == 1 { trace(1); }
END { trace(2); }
