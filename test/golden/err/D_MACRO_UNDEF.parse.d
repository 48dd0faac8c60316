//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = $9; y = $$9; z = $nope; w = $$nope; v = $target; }
pid$target:::entry { }
