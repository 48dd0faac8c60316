/* HotSpot's objects in a copy of a process's memory. Private to this folder. */
#ifndef DESCRY_MEMORY_HEAPLIVE_JAVA_HEAP_H
#define DESCRY_MEMORY_HEAPLIVE_JAVA_HEAP_H

#include "memory/copy/memory_copy.h"
#include "memory/graph/graph.h"
#include "program/runtime/jvm/jvm.h"

/* X(name, required, type, member): members of the JVM's structures. */
#define JAVA_MEMBERS(X) \
	X(heap_active, 1, "CollectedHeap", "_is_gc_active") \
	X(heap_reserved, 1, "CollectedHeap", "_reserved") \
	X(serial_young, 0, "GenCollectedHeap", "_young_gen") \
	X(serial_old, 0, "GenCollectedHeap", "_old_gen") \
	X(young_eden, 0, "DefNewGeneration", "_eden_space") \
	X(young_from, 0, "DefNewGeneration", "_from_space") \
	X(tenured_space, 0, "TenuredGeneration", "_the_space") \
	X(space_bottom, 0, "Space", "_bottom") \
	X(space_top, 0, "ContiguousSpace", "_top") \
	X(parallel_eden, 0, "PSYoungGen", "_eden_space") \
	X(parallel_from, 0, "PSYoungGen", "_from_space") \
	X(parallel_old, 0, "PSOldGen", "_object_space") \
	X(mutable_bottom, 0, "MutableSpace", "_bottom") \
	X(mutable_top, 0, "MutableSpace", "_top") \
	X(g1_manager, 0, "G1CollectedHeap", "_hrm") \
	X(manager_regions, 0, "HeapRegionManager", "_regions") \
	X(regions_base, 0, "G1HeapRegionTable", "_base") \
	X(regions_length, 0, "G1HeapRegionTable", "_length") \
	X(region_type, 0, "HeapRegion", "_type") \
	X(region_bottom, 0, "HeapRegion", "_bottom") \
	X(region_top, 0, "HeapRegion", "_top") \
	X(type_tag, 0, "HeapRegionType", "_tag") \
	X(class_layout, 1, "Klass", "_layout_helper") \
	X(class_super, 1, "Klass", "_super") \
	X(class_next, 1, "Klass", "_next_link") \
	X(class_mirror, 1, "Klass", "_java_mirror") \
	X(class_vtable, 1, "Klass", "_vtable_len") \
	X(class_itable, 1, "InstanceKlass", "_itable_len") \
	X(class_maps, 1, "InstanceKlass", "_nonstatic_oop_map_size") \
	X(class_fields, 0, "InstanceKlass", "_fields") \
	X(class_nfields, 0, "InstanceKlass", "_java_fields_count") \
	X(class_stream, 0, "InstanceKlass", "_fieldinfo_stream") \
	X(constants_cache, 1, "ConstantPool", "_cache") \
	X(cache_references, 1, "ConstantPoolCache", "_resolved_references") \
	X(loader_object, 1, "ClassLoaderData", "_class_loader") \
	X(loader_next, 1, "ClassLoaderData", "_next") \
	X(loader_classes, 1, "ClassLoaderData", "_klasses") \
	X(loader_hidden, 0, "ClassLoaderData", "_has_class_mirror_holder") \
	X(thread_tlab, 1, "Thread", "_tlab") \
	X(thread_handles, 0, "Thread", "_active_handles") \
	X(thread_exception, 1, "ThreadShadow", "_pending_exception") \
	X(thread_object, 1, "JavaThread", "_threadObj") \
	X(thread_result, 0, "JavaThread", "_vm_result") \
	X(thread_stack, 1, "JavaThread", "_stack_base") \
	X(thread_stack_size, 1, "JavaThread", "_stack_size") \
	X(tlab_start, 1, "ThreadLocalAllocBuffer", "_start") \
	X(tlab_top, 1, "ThreadLocalAllocBuffer", "_top") \
	X(tlab_end, 1, "ThreadLocalAllocBuffer", "_end") \
	X(tlab_desired, 1, "ThreadLocalAllocBuffer", "_desired_size") \
	X(handles_first, 1, "JNIHandleBlock", "_handles") \
	X(handles_top, 1, "JNIHandleBlock", "_top") \
	X(handles_next, 1, "JNIHandleBlock", "_next") \
	X(z_heap, 0, "ZCollectedHeap", "_heap") \
	X(z_pages, 0, "ZHeap", "_page_table") \
	X(z_page_map, 0, "ZPageTable", "_map") \
	X(z_page_words, 0, "ZGranuleMapForPageTable", "_map") \
	X(z_forwardings, 0, "ZHeap", "_forwarding_table") \
	X(z_forwarding_map, 0, "ZForwardingTable", "_map") \
	X(z_forwarding_words, 0, "ZGranuleMapForForwarding", "_map") \
	X(z_page_type, 0, "ZPage", "_type") \
	X(z_page_seqnum, 0, "ZPage", "_seqnum") \
	X(z_page_virtual, 0, "ZPage", "_virtual") \
	X(z_page_top, 0, "ZPage", "_top") \
	X(z_start, 0, "ZVirtualMemory", "_start") \
	X(z_end, 0, "ZVirtualMemory", "_end") \
	X(z_from, 0, "ZForwarding", "_virtual") \
	X(z_from_shift, 0, "ZForwarding", "_object_alignment_shift") \
	X(z_entries, 0, "ZForwarding", "_entries") \
	X(z_entries_length, 0, "ZAttachedArrayForForwarding", "_length") \
	X(z_phase, 0, "ZGlobalsForVMStructs", "_ZGlobalPhase") \
	X(z_seqnum, 0, "ZGlobalsForVMStructs", "_ZGlobalSeqNum") \
	X(z_offset_mask, 0, "ZGlobalsForVMStructs", "_ZAddressOffsetMask") \
	X(z_good_mask, 0, "ZGlobalsForVMStructs", "_ZAddressGoodMask")

/* X(name, type, member): the same members in other versions. */
#define JAVA_OTHER_MEMBERS(X) \
	X(heap_active, "CollectedHeap", "_is_stw_gc_active") \
	X(serial_young, "SerialHeap", "_young_gen") \
	X(serial_old, "SerialHeap", "_old_gen") \
	X(space_bottom, "ContiguousSpace", "_bottom") \
	X(mutable_bottom, "ImmutableSpace", "_bottom") \
	X(manager_regions, "G1HeapRegionManager", "_regions") \
	X(region_type, "G1HeapRegion", "_type") \
	X(region_bottom, "G1HeapRegion", "_bottom") \
	X(region_top, "G1HeapRegion", "_top") \
	X(region_top, "G1ContiguousSpace", "_top") \
	X(type_tag, "G1HeapRegionType", "_tag") \
	X(loader_hidden, "ClassLoaderData", "_is_anonymous") \
	X(thread_handles, "JavaThread", "_active_handles")

/* X(name, type, member): the same variables in other versions. */
#define JAVA_OTHER_VARIABLES(X) \
	X(oop_base, "Universe", "_narrow_oop._base") \
	X(oop_base, "CompressedOops", "_base") \
	X(oop_shift, "Universe", "_narrow_oop._shift") \
	X(oop_shift, "CompressedOops", "_shift") \
	X(class_base, "Universe", "_narrow_klass._base") \
	X(class_base, "CompressedKlassPointers", "_base") \
	X(class_shift, "Universe", "_narrow_klass._shift") \
	X(class_shift, "CompressedKlassPointers", "_shift") \
	X(class_class, "SystemDictionary", \
	  "_well_known_klasses[SystemDictionary::Class_klass_knum]")

/* X(name, required, type, member): variables of the JVM. */
#define JAVA_VARIABLES(X) \
	X(heap, 1, "Universe", "_collectedHeap") \
	X(oop_base, 1, "CompressedOops", "_narrow_oop._base") \
	X(oop_shift, 1, "CompressedOops", "_narrow_oop._shift") \
	X(class_base, 1, "CompressedKlassPointers", "_narrow_klass._base") \
	X(class_shift, 1, "CompressedKlassPointers", "_narrow_klass._shift") \
	X(parallel_young, 0, "ParallelScavengeHeap", "_young_gen") \
	X(parallel_old, 0, "ParallelScavengeHeap", "_old_gen") \
	X(loaders, 1, "ClassLoaderDataGraph", "_head") \
	X(tlab_reserve, 1, "ThreadLocalAllocBuffer", "_reserve_for_allocation_prefetch") \
	X(z_globals, 0, "ZGlobalsForVMStructs", "_instance_p") \
	X(mirror_class, 1, "java_lang_Class", "_klass_offset") \
	X(mirror_words, 1, "java_lang_Class", "_oop_size_offset") \
	X(class_class, 1, "vmClasses", "_klasses[static_cast<int>(vmClassID::Class_klass_knum)]")

/* X(name, required, type): sizes of structures. */
#define JAVA_SIZES(X) \
	X(instance_class, 1, "InstanceKlass") \
	X(g1_heap, 0, "G1CollectedHeap") \
	X(region, 0, "HeapRegion") \
	X(z_forwarding, 0, "ZForwarding")

struct java_layout {
#define X(name, ...) struct jvm_member name;
	JAVA_MEMBERS(X)
#undef X
	struct {
#define X(name, ...) uint64_t name;
		JAVA_VARIABLES(X)
	} variable; /* addresses */
	struct {
		JAVA_SIZES(X)
#undef X
	} size;
};

enum java_collector { JAVA_SERIAL, JAVA_PARALLEL, JAVA_G1, JAVA_ZGC };

/* A reference in the objects of a class. */
struct java_ref {
	uint32_t at; /* bytes from the object's address */
	uint32_t label;
	enum graph_strength strength;
};

/* A number in the objects of a class. */
struct java_number {
	uint32_t at; /* bytes from the object's address */
	uint32_t size;
};

enum java_kind { JAVA_INSTANCE, JAVA_MIRROR, JAVA_REFERENCES, JAVA_NUMBERS };

struct java_class {
	uint64_t address; /* of its Klass */
	enum java_kind kind;
	uint32_t number;              /* class of the graph */
	uint32_t size;                /* of an instance; of an array: where the elements begin */
	uint8_t shift;                /* of an array: log2 of the bytes of an element */
	bool laid_out;                /* refs are known */
	enum graph_strength strength; /* of Reference.referent in its instances */
	uint64_t super, mirror, constants;
	uint32_t ref, nrefs;          /* of refs: of an instance */
	uint32_t static_, nstatic;    /* of refs: of its mirror */
	uint32_t number_at, nnumbers; /* of numbers: of an instance, when they are wanted */
	uint32_t number_bytes;
	const char *name;  /* as the JVM has it */
	uint64_t n, bytes; /* of a graph that counts: its objects */
};

/* A part of the heap that has objects one behind the other. */
struct java_part {
	uint64_t bottom, top;
	const struct memory_region *region;
	uint64_t *starts;   /* a bit for each place where an object may begin; NULL: they are only
			   * counted */
	bool single;        /* one object at the bottom, which goes on in other parts */
	uint32_t step;      /* objects begin at multiples of so many bytes; 0: of the alignment */
	uint64_t structure; /* of G1 its HeapRegion, of ZGC its ZPage */
	/* What lies below `marked` is dead unless it has a bit in `marks`, which has one for each
	 * place where an object may begin. bottom: nothing is known to be dead. */
	uint64_t marked;
	const uint8_t *marks;
	uint8_t *made; /* of ZGC: the memory of `marks` */
};

/* The part of the heap in which a thread makes its objects: [start, top) has some, [top, end) has
 * none yet. */
struct java_buffer {
	uint64_t start, top, end;
};

/* Objects that ZGC moves out of a page, or has moved. */
struct java_moved {
	uint64_t start, end; /* the page: offsets in the heap */
	uint32_t shift;      /* log2 of the bytes between its objects */
	uint32_t mask;       /* number of entries - 1 */
	const uint8_t *entries;
};
struct java_zgc {
	uint64_t offsets; /* the bits of a reference that are its offset in the heap */
	uint64_t base;    /* of the first mapping of the heap; 0: the collector is another */
	uint64_t good;    /* the colour of references that are up to date */
	uint32_t phase, cycle;
	VEC(struct java_moved) moved; /* by start, disjoint */
	uint64_t looks; /* at entries of their tables that there may still be: forged ones are full */
};

struct java_reader {
	const struct memory_copy *copy;
	struct jvm *jvm;
	struct graph *graph;
	struct java_layout layout;
	enum java_collector collector;
	struct java_zgc zgc;
	unsigned major;       /* version */
	uint64_t mark_unused; /* bits that are 0 in the mark of an object without a lock */
	bool narrow, narrow_class;
	uint32_t align; /* of objects */
	uint64_t oop_base, class_base;
	uint32_t oop_shift, class_shift;
	uint32_t mirror_class, mirror_words; /* where a mirror has its Klass, and its size */
	VEC(struct java_part) parts;         /* by address, disjoint */
	VEC(struct java_buffer) buffers;     /* by address, disjoint */
	VEC(struct java_class) classes;
	uint32_t *class_slots, class_mask;
	VEC(struct java_ref) refs;
	VEC(struct java_number) numbers;
	uint64_t budget;  /* words of the JVM's own structures that may still be read */
	uint64_t holds;   /* roots, and references of threads and loaders, there is room for */
	uint64_t unheld;  /* those for which there was none */
	uint64_t objects; /* that were found */
	uint64_t skipped; /* bytes in front of a top that are no object */
	uint64_t holes;   /* bytes of the threads' buffers that have no objects yet */
	uint64_t outside; /* bytes of the heap that are not in the copy */
	uint64_t values;  /* bytes of arrays' elements that may still be kept */
	struct space_range cached; /* the run of the last look */
	struct java_part *last;
};

/* --- java_layout.c --- */
struct err *java_layout_read(struct java_reader *x);

/* --- java_parts.c --- */
/* Finds the parts of the heap and the threads' buffers. */
struct err *java_parts_find(struct java_reader *x);
/* Returns the part that has an address at which objects may begin, or NULL. */
struct java_part *java_part_at(struct java_reader *x, uint64_t addr);
/* Is there an object at this address? Works behind java_objects_add(). */
bool java_is_object(struct java_reader *x, uint64_t addr);

/* --- java_marks.c --- */
/* Finds which objects G1 knows to be dead. */
void java_marks_find(struct java_reader *x);

/* --- java_zgc.c --- */
/* Fills x->zgc. Returns an error for a version whose heap is not known. */
struct err *java_zgc_find(struct java_reader *x);
/* Finds where moved objects are: before any reference is read, those of the classes too. */
void java_zgc_moves(struct java_reader *x);
void java_zgc_parts(struct java_reader *x);
/* Finds which objects ZGC knows to be dead. */
void java_zgc_marks(struct java_reader *x);
/* Returns the address of a reference's object. 0: it is no reference. */
uint64_t java_zgc_object(struct java_reader *x, uint64_t reference);

/* --- java_classes.c --- */
/* Finds all classes. */
struct err *java_classes_find(struct java_reader *x);
/* Returns the class whose Klass is at this address, or NULL. */
struct java_class *java_class_at(const struct java_reader *x, uint64_t klass);

/* --- java_fields.c --- */
/* Finds where the objects of a class, and its mirror, have references. */
void java_lay_out(struct java_reader *x, struct java_class *c);

/* --- java_objects.c --- */
void java_objects_add(struct java_reader *x);

/* --- java_roots.c --- */
/* Adds a root, if there is an object. */
void java_root(struct java_reader *x, uint64_t object, const char *kind);
/* Lets graph_find_reference() find an object. */
void java_alias(struct java_reader *x, uint64_t reference, uint64_t object);
void java_roots_add(struct java_reader *x);

/* --- java_storage.c --- */
/* Adds as roots what the JVM's own lists of handles hold. */
void java_storages_add(struct java_reader *x);
/* Returns the object of a handle: a pointer to an address in the JVM's memory. 0: none. */
uint64_t java_handle(struct java_reader *x, uint64_t at);

/* --- java_source.c --- */
/* Reads the objects by a layout that is known. */
struct err *java_read(struct java_reader *x);
void java_reader_fini(struct java_reader *x);

static inline bool java_afford(struct java_reader *x, uint64_t words)
{
	if (x->budget < words)
		return false;
	x->budget -= words;
	return true;
}

static inline bool java_bit(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static inline void java_bit_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}

static inline uint32_t java_u32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t java_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns the address of the object that a reference of 8 bytes leads to. */
static inline uint64_t java_wide(struct java_reader *x, uint64_t reference)
{
	return x->zgc.base && reference ? java_zgc_object(x, reference) : reference;
}

/* Reads the reference at p. */
static inline uint64_t java_ref(struct java_reader *x, const uint8_t *p)
{
	uint32_t v;

	if (!x->narrow)
		return java_wide(x, java_u64(p));
	v = java_u32(p);
	return v ? x->oop_base + ((uint64_t)v << x->oop_shift) : 0;
}

#endif
