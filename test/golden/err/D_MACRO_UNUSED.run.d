//@ cmd: -e -s %s unused
//@ err
//@ exit: 1
BEGIN { exit(0); }
