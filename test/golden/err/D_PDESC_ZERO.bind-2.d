//@ cmd: -d bind
//@ err
//@ exit: 1
syscall::opennat:entry { trace(1); }
