//@ cmd: -d parse
//@ err
//@ exit: 1
a:b:c:d:e { trace(1); }
pid$7:::entry { trace(2); }
$nothing:::x { trace(3); }
0 { trace(4); }
BEGIN { trace(5); }
