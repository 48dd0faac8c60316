//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @a = count(); trace(@a + 3); trace(@a == 1); x = @a; }
