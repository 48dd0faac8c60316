//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { print(bcopy(alloca(1), alloca(1), 1)); }
