//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 'a
; y = 2; }
