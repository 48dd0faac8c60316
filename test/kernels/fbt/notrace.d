/* What cannot be traced is said, with the reason. */
//@ err
//@ exit: 1
fbt::vfs_raed:entry { }
fbt::vfs_read:etnry { }
fbt::asm_exc_page_fault:entry { }
fbt::no_such_*:entry { }
