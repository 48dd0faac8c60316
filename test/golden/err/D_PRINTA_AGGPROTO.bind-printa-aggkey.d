//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @a[1] = count(); @b["x"] = count(); printa(@a, @b); }
