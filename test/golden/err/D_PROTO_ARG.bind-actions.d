//@ cmd: -d bind
//@ err
//@ exit: 1
struct foo { int a; } f;
BEGIN { mutex_owned("x"); mutex_type_adaptive(trace(1)); d_path((int *)0); stack("a"); tracemem(1, "a"); pcap(f, 0); printf(1); }
