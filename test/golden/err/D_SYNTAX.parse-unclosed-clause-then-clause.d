//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { trace(1);
syscall::read:entry { trace(2); }
END { trace(3); }
