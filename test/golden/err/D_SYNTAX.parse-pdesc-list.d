//@ cmd: -d parse
//@ err
//@ exit: 1
syscall::read:entry, { trace(1); }
syscall::read:entry; { trace(1); }
, BEGIN { }
END { }
