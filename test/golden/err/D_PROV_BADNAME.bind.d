//@ cmd: -d bind
//@ err
//@ exit: 1
provider app1 { probe go(int); };
BEGIN { exit(0); }
