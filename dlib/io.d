/* Block I/O and files: the arguments of io:::start and io:::done, and fds[]. */
#pragma D depends_on library types.d

typedef struct bufinfo {
	int b_flags;
	size_t b_bcount;	/* bytes */
	caddr_t b_addr;
	uint64_t b_lblkno;	/* 512-byte sector on the device */
	uint64_t b_blkno;	/* the same */
	size_t b_resid;
	size_t b_bufsize;
	caddr_t b_iodone;
	int b_error;		/* errno of a failed request; 0: it succeeded or has not ended */
	dev_t b_edev;		/* the whole device, not the partition */
} bufinfo_t;

inline int B_BUSY = 0x000001;
inline int B_DONE = 0x000002;
inline int B_ERROR = 0x000004;
inline int B_PAGEIO = 0x000010;
inline int B_PHYS = 0x000020;
inline int B_READ = 0x000040;
inline int B_WRITE = 0x000100;
inline int B_ASYNC = 0x000400;

/* <linux/blk_types.h>: bit 0 of the operation means that data goes to the device, bit 11 that a thread waits. */
inline int __b_flags[uint32_t op] = (op & 1) == 0 ? B_READ : (op & 0x800) != 0 ? B_WRITE : B_WRITE | B_ASYNC;

inline dev_t __request_dev[struct request *R] =
	R->q->disk != 0 ? (R->q->disk->major << 20) + R->q->disk->first_minor : 0;

translator bufinfo_t < struct request *R > {
	b_flags = __b_flags[(uint32_t)R->cmd_flags];
	b_bcount = R->__data_len;
	b_addr = 0;
	b_lblkno = R->__sector;
	b_blkno = R->__sector;
	b_resid = 0;
	b_bufsize = R->__data_len;
	b_iodone = (caddr_t)R->end_io;
	b_error = 0;
	b_edev = __request_dev[R];
};

/* blk_status_t of <linux/blk_types.h>; numbers above 10 are not the same on all kernels. */
inline int __blk_errno[uint8_t s] =
	s == 0 ? 0 : s == 1 ? 95 : s == 2 ? 110 : s == 3 ? 28 : s == 4 ? 67 : s == 5 ? 121 : s == 6 ? 52 : s == 7 ? 61 :
	s == 8 ? 84 : s == 9 ? 12 : 5;

/* Takes an ended request apart: its address, with the errno in the upper eight bits, which are ones in any address of the kernel
 * (src/probe/io_probes.c packs them). */
inline struct request *__done_request[uint64_t W] = (struct request *)(W | 0xff00000000000000);

translator bufinfo_t < uint64_t W > {
	b_flags = __b_flags[(uint32_t)__done_request[W]->cmd_flags] | B_DONE | (W >> 56 != 0 ? B_ERROR : 0);
	b_bcount = __done_request[W]->__data_len;
	b_addr = 0;
	b_lblkno = __done_request[W]->__sector;
	b_blkno = __done_request[W]->__sector;
	b_resid = 0;
	b_bufsize = __done_request[W]->__data_len;
	b_iodone = (caddr_t)__done_request[W]->end_io;
	b_error = (int)(W >> 56);
	b_edev = __request_dev[__done_request[W]];
};

translator bufinfo_t < struct bio *B > {
	b_flags = __b_flags[(uint32_t)B->bi_opf];
	b_bcount = B->bi_iter.bi_size;
	b_addr = 0;
	b_lblkno = B->bi_iter.bi_sector;
	b_blkno = B->bi_iter.bi_sector;
	b_resid = 0;
	b_bufsize = B->bi_iter.bi_size;
	b_iodone = (caddr_t)B->bi_end_io;
	b_error = B->bi_status != 0 ? 5 : 0;
	b_edev = B->bi_bdev != 0 ? (B->bi_bdev->bd_disk->major << 20) + B->bi_bdev->bd_disk->first_minor : 0;
};

typedef struct devinfo {
	int dev_major;
	int dev_minor;
	int dev_instance;
	string dev_name;	/* driver */
	string dev_statname;	/* as iostat(1) prints it */
	string dev_pathname;
} devinfo_t;

inline string __disk_driver[struct gendisk *D] =
	D->part0->bd_device.parent != 0 && D->part0->bd_device.parent->driver != 0 ?
	stringof(D->part0->bd_device.parent->driver->name) : stringof(D->disk_name);

translator devinfo_t < struct request *R > {
	dev_major = R->q->disk != 0 ? R->q->disk->major : 0;
	dev_minor = R->q->disk != 0 ? R->q->disk->first_minor : 0;
	dev_instance = R->q->disk != 0 ? R->q->disk->first_minor : 0;
	dev_name = R->q->disk != 0 ? __disk_driver[R->q->disk] : "<none>";
	dev_statname = R->q->disk != 0 ? stringof(R->q->disk->disk_name) : "<none>";
	dev_pathname = R->q->disk != 0 ? strjoin("/dev/", stringof(R->q->disk->disk_name)) : "<none>";
};

translator devinfo_t < struct bio *B > {
	dev_major = B->bi_bdev != 0 ? B->bi_bdev->bd_disk->major : 0;
	dev_minor = B->bi_bdev != 0 ? B->bi_bdev->bd_disk->first_minor : 0;
	dev_instance = B->bi_bdev != 0 ? B->bi_bdev->bd_disk->first_minor : 0;
	dev_name = B->bi_bdev != 0 ? __disk_driver[B->bi_bdev->bd_disk] : "<none>";
	dev_statname = B->bi_bdev != 0 ? stringof(B->bi_bdev->bd_disk->disk_name) : "<none>";
	dev_pathname = B->bi_bdev != 0 ? strjoin("/dev/", stringof(B->bi_bdev->bd_disk->disk_name)) : "<none>";
};

typedef struct fileinfo {
	string fi_name;
	string fi_dirname;
	string fi_pathname;
	loff_t fi_offset;
	string fi_fs;
	string fi_mount;
	int fi_oflags;		/* O_* */
} fileinfo_t;

translator fileinfo_t < struct file *F > {
	fi_name = F != 0 ? stringof(F->f_path.dentry->d_name.name) : "<none>";
	fi_dirname = F != 0 ? dirname(d_path(&F->f_path)) : "<none>";
	fi_pathname = F != 0 ? d_path(&F->f_path) : "<none>";
	fi_offset = F != 0 ? F->f_pos : 0;
	fi_fs = F != 0 ? stringof(F->f_inode->i_sb->s_type->name) : "<none>";
	fi_mount = F != 0 ? __mount_point(F->f_path.mnt) : "<none>";
	fi_oflags = F != 0 ? (int)F->f_flags : 0;
};

/* A page of a larger folio points to the first one, with bit 0 set. */
inline struct page *__page_head[struct page *P] =
	(P->compound_head & 1) != 0 ? (struct page *)(P->compound_head - 1) : P;

/* Low bits of mapping are set for memory that belongs to no file (direct I/O from a buffer). */
inline struct inode *__page_inode[struct page *P] =
	P->mapping != 0 && ((uintptr_t)P->mapping & 3) == 0 ? P->mapping->host : (struct inode *)0;

/* The file that a bio reads or writes through the page cache; 0 for other I/O. */
inline struct inode *__bio_inode[struct bio *B] =
	B != 0 && (B->bi_opf & 0xfe) == 0 && B->bi_iter.bi_size != 0 && B->bi_io_vec != 0 ?
	__page_inode[__page_head[B->bi_io_vec[B->bi_iter.bi_idx].bv_page]] : (struct inode *)0;

/* The kind of a bio's file: 1 a file; 2 a file that is being executed, which no process may open for writing; 0 other I/O. */
inline int __inode_kind[struct inode *I] =
	I == 0 || (I->i_mode & 0xf000) != 0x8000 ? 0 : I->i_writecount.counter < 0 ? 2 : 1;
inline int __bio_file[struct bio *B] = __inode_kind[__bio_inode[B]];

/* Anonymous memory on its way from or to swap space. The flags are the first word of a page. */
inline int __page_swap[struct page *P] =
	(*(uint64_t *)P >> PG_swapcache & 1) != 0 && (*(uint64_t *)P >> PG_swapbacked & 1) != 0;
inline int __bio_swap[struct bio *B] = B->bi_io_vec != 0 ?
	__page_swap[__page_head[B->bi_io_vec[B->bi_iter.bi_idx].bv_page]] : 0;

inline struct dentry *__inode_dentry[struct inode *I] =
	I != 0 && I->i_dentry.first != 0 ?
	(struct dentry *)((uintptr_t)I->i_dentry.first - offsetof(struct dentry, d_u)) : (struct dentry *)0;

inline string __dentry_name[struct dentry *D] = D != 0 ? stringof(D->d_name.name) : "<unknown>";
inline string __dentry_pathname[struct dentry *D] = D != 0 ? __dentry_path(D) : "<unknown>";
inline string __inode_fs[struct inode *I] = I != 0 ? stringof(I->i_sb->s_type->name) : "<unknown>";

/* The file of a request's first bio. Its path is within the file system, because the mount is not known. */
translator fileinfo_t < struct bio *B > {
	fi_name = __dentry_name[__inode_dentry[__bio_inode[B]]];
	fi_dirname = dirname(__dentry_pathname[__inode_dentry[__bio_inode[B]]]);
	fi_pathname = __dentry_pathname[__inode_dentry[__bio_inode[B]]];
	fi_offset = 0;
	fi_fs = __inode_fs[__bio_inode[B]];
	fi_mount = "<unknown>";
	fi_oflags = 0;
};

translator fileinfo_t < struct request *R > {
	fi_name = __dentry_name[__inode_dentry[__bio_inode[R->bio]]];
	fi_dirname = dirname(__dentry_pathname[__inode_dentry[__bio_inode[R->bio]]]);
	fi_pathname = __dentry_pathname[__inode_dentry[__bio_inode[R->bio]]];
	fi_offset = 0;
	fi_fs = __inode_fs[__bio_inode[R->bio]];
	fi_mount = "<unknown>";
	fi_oflags = 0;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (
	fd >= 0 && fd < curthread->files->fdt->max_fds ? curthread->files->fdt->fd[fd] : (struct file *)0);
