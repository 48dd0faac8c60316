//@ cmd: -d parse 99999999999999999999
//@ err
//@ exit: 1
BEGIN { x = $1; }
