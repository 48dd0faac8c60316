//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { trunc(@a, 1, 2); }
