//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { else x; import; probe; trace(case); a = int; }
