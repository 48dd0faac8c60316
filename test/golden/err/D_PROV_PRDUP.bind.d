//@ cmd: -d bind
//@ err
//@ exit: 1
provider app { probe go(int); probe go(string); };
BEGIN { exit(0); }
