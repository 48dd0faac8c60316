//@ cmd: -d bind
//@ err
//@ exit: 1
nosuch:probe:at:all { trace(1); }
