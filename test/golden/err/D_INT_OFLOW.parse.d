//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 18446744073709551616; y = 0x10000000000000000; z = 0xffffffffffffffff; }
