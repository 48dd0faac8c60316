//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { x = 5 + -trace(0); x = "a" * 2; x /= "b"; }
