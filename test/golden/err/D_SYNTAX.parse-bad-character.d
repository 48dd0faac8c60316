//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = 3 # 4; y = 2; }
END { x = $; }
` { }
