//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { int a[5]; struct s { int x; } b; }
