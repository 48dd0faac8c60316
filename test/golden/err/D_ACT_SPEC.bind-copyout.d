//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { speculate(1); copyout(alloca(1), arg0, 1); }
