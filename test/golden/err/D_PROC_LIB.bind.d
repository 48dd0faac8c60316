//@ cmd: -d bind
//@ c: /bin/true
//@ sub: /pid[0-9]+/pidN/
//@ err
//@ exit: 1
pid$target:libc:-:800 { }
