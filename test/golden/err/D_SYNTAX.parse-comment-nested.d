//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { /* one /* two */ trace(1); }
