//@ cmd: -e -x engine=interp -x aggsize=1t -x dynvarsize=1t
//@ err
BEGIN { @[pid] = count(); a[1] = 2; @all = count(); }
