//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trace(comm); @[kstack] = count(); trace(nsecs); }
BEGIN { @ = hist(1); @l = lhist(1, 0, 10, 1); printf("%s", str(arg0)); trace(retval); }
BEGIN { trace(ksym(1)); time("%H"); println("x"); trace(username); trace(gettimeofday_us()); }
