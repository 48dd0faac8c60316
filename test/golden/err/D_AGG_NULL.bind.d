//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @a = count(); @a; }
