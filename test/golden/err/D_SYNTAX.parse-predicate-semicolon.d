//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN /x == 1/;
END { }
