//@ cmd: -d parse
syscall::read*:entry,
syscall::*write*:return,
syscall::[op]*:entry,
syscall::[a-m]???:entry,
syscall::[!x]*:,
:::BEGIN,
fbt:vmlinux:vfs_*:entry,
::tcp_*:,
*:*:*:*,
f?o:::bar-baz,
syscall::r\*ad:entry
{
}
