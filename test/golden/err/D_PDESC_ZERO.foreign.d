//@ cmd: -d bind
//@ err
//@ exit: 1
kprobe:vfs_read { trace(1); }
kretprobe:vfs_read { trace(1); }
tracepoint:syscalls:sys_enter_openat { trace(1); }
uprobe:/bin/bash:readline { trace(1); }
interval:s:1 { trace(1); }
profile:hz:99 { trace(1); }
syscalls:sys_enter_open { trace(1); }
begin { trace(1); }
