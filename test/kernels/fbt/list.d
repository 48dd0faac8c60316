/* -l -v shows the prototype. */
//@ cmd: -l -v -s %s
//@ sub: /^ *\d{7} /ID /
fbt::vfs_read: { }
