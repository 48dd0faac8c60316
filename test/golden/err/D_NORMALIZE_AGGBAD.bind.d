//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { normalize(@nosuch, 2); }
