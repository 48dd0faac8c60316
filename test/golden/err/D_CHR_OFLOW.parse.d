//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 'abcdefghi'; y = '\x41\x42\x43\x44\x45\x46\x47\x48\n'; }
