//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { commit(1); exit(0); }
