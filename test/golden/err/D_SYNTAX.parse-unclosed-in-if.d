//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { if (x) { trace(1);
profile:::tick-1s, END
{ trace(2); }
tick-5s { trace(3) }
