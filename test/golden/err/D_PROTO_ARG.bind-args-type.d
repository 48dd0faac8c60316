//@ cmd: -d bind
//@ err
//@ exit: 1
syscall::read:entry { trace(args[pid]); }
