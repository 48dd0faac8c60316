//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(inet_ntoa6((struct in6_addr *)0, pid)); @ = lquantize(pid, "a", 5); }
