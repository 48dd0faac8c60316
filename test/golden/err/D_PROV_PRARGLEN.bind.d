//@ cmd: -d bind
//@ err
//@ exit: 1
provider app { probe go(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int); };
BEGIN { exit(0); }
