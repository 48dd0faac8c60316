/* args[] are typed from BTF: members are followed. */
//@ fbt: fentry, kprobe
//@ c: dd if=/dev/zero of=/dev/null bs=7 count=3
//@ cmd: -q
fbt::vfs_read:entry
/pid == $target && args[2] == 7/
{
	@[stringof(args[0]->f_path.dentry->d_name.name), args[0]->f_inode->i_ino > 0 ? "inode" : "none",
	    args[0]->f_inode->i_mode & 0170000, args[0]->f_inode->i_sb->s_magic] = count();
}
