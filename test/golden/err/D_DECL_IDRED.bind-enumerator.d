//@ cmd: -d bind
//@ err
//@ exit: 1
enum a { one, two };
enum b { three, one };
BEGIN { exit(0); }
