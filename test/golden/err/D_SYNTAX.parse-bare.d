//@ cmd: -d parse
//@ err
//@ exit: 1
syscall::read:entry
syscall::write:entry { trace(1); }
END { trace(); }
fbt:::
