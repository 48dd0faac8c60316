/* The type graph: types from three sources in one table of 32-bit ids.
 *
 * In: kernel BTF (read lazily, member by member), C declarations in D programs, DWARF of a process
 * (also read lazily).
 * Out: kinds, sizes, members, names, printable C.
 * Always true: ids are stable for the graph's life. Id 0 is void. A BTF type becomes a node only
 * when it is queried, so a graph without queries costs microseconds. */
#ifndef DESCRY_PROGRAM_TYPE_TYPE_H
#define DESCRY_PROGRAM_TYPE_TYPE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

typedef uint32_t type_id;

enum type_kind {
	TYPE_VOID,
	TYPE_INT, /* char, bool and enum constants' type included */
	TYPE_FLOAT,
	TYPE_POINTER, /* ref */
	TYPE_ARRAY,   /* ref, nelems; nelems 0: flexible or undeclared */
	TYPE_STRUCT,
	TYPE_UNION,
	TYPE_ENUM,
	TYPE_TYPEDEF,  /* ref */
	TYPE_CONST,    /* ref */
	TYPE_VOLATILE, /* ref */
	TYPE_RESTRICT, /* ref */
	TYPE_FUNC,     /* ref = result, params */
	TYPE_FORWARD,  /* struct or union without members known */
	TYPE_STRING,   /* D's string */
	TYPE_DYN,      /* D's dynamic type: stack(), usym() and the like, results of actions */
};

enum type_int_flag { TYPE_SIGNED = 1, TYPE_CHAR = 2, TYPE_BOOL = 4 };

/* The types that every D program has, at fixed ids. */
enum type_builtin {
	T_VOID,
	T_CHAR,
	T_SCHAR,
	T_UCHAR,
	T_SHORT,
	T_USHORT,
	T_INT,
	T_UINT,
	T_LONG,
	T_ULONG,
	T_LLONG,
	T_ULLONG,
	T_BOOL,
	T_FLOAT,
	T_DOUBLE,
	T_LDOUBLE,
	T_STRING,
	T_DYN,
	T_VOIDPTR,
	T_CHARPTR,
	T_INT8,
	T_INT16,
	T_INT32,
	T_INT64,
	T_UINT8,
	T_UINT16,
	T_UINT32,
	T_UINT64, /* typedefs intN_t */
	T_INTPTR,
	T_UINTPTR,
	T_SIZE,
	T_SSIZE,
	T_PTRDIFF,
	T_UCHAR_T,
	T_USHORT_T,
	T_UINT_T,
	T_ULONG_T,
	T_LONGLONG_T,
	T_U_LONGLONG_T,
	T_PID,
	T_ID,
	T_UID,
	T_GID,
	T_BUILTIN_COUNT
};

struct type_member {
	const char *name; /* "" for an anonymous struct/union member */
	type_id type;
	uint64_t bit_offset; /* from the start of the outermost struct queried */
	uint32_t bit_size;   /* 0: not a bit-field */
};

struct type_enumerator {
	const char *name;
	int64_t value;
};
struct type_param {
	const char *name;
	type_id type;
};

struct type_graph;

struct type_graph *type_graph_new(void);
void type_graph_free(struct type_graph *g);

/* Sets the path of kernel BTF (NULL: /sys/kernel/btf/vmlinux). Nothing is read until the first
 * look-up that the graph's own types cannot answer. Without BTF every later kernel look-up returns
 * "not found", and type_kernel_err() returns the reason. Module BTF (/sys/kernel/btf/<module>) is
 * searched after vmlinux. */
void type_use_kernel(struct type_graph *g, const char *btf_path);
/* Searches types that neither the program nor the kernel has in the DWARF of this process's program
 * and libraries. With "user`" before their name, or the file's name ("libfoo`"), they are searched
 * only there. */
void type_use_process(struct type_graph *g, pid_t pid);
/* The same for a space, which must live as long as the graph. */
struct space;
void type_use_space(struct type_graph *g, struct space *s);
/* A struct, union or class with a name of its own, or that of a typedef; or a variable. */
struct type_user_item {
	/* Of a type, with its namespaces: "shop::Order"; of a variable, without. Valid during the
	 * call. */
	const char *name;
	type_id type;   /* the typedef, when the struct has no other name */
	uint64_t addr;  /* of a variable, in the process; 0: it is a type */
	bool is_tag;    /* the name follows "struct" or "union": the language is C */
	bool is_system; /* of the C library or the dynamic linker */
};
/* Calls fn for each variable that has a fixed address, global ones and those of functions, and
 * each type, once for all types of equal name and size. */
void type_user_each(struct type_graph *g, void (*fn)(void *arg, const struct type_user_item *item),
		    void *arg);
/* Finds the TYPE_FUNC of the function at a link-time address of a file, by its DWARF or its debug
 * file's. Returns false when nothing is known. */
bool type_user_func(struct type_graph *g, const char *path, uint64_t addr, type_id *ret);
/* Of the debugging information of programs and libraries, so much is kept: names, members, types.
 * type_user_is_cut() returns true when there was more, and some are unknown. */
enum { TYPE_USER_MB = 512 };
bool type_user_is_cut(const struct type_graph *g);
const char *type_kernel_err(struct type_graph *g); /* NULL: BTF was read or not needed */

/* --- look-ups: C declarations of the program first, then kernel, then process. module NULL or "":
 * any; "D": the program's own; --- */
/* Looks a type up. kind is TYPE_STRUCT, TYPE_UNION, TYPE_ENUM (tags) or TYPE_TYPEDEF (typedef names
 * and base type names such as "unsigned int", "int64_t"). Returns false when there is none. */
bool type_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		 type_id *ret);
/* Offers the names of the kernel's and the process's types of this kind, for "did you mean ...?".
 * Leaves out types of modules. */
struct nearest;
void type_nearest(struct type_graph *g, enum type_kind kind, struct nearest *n);
/* Parses a C type in text, such as "struct task_struct *", "unsigned long", "u64", "char *const *",
 * "string". */
bool type_parse_name(struct type_graph *g, const char *text, type_id *ret);
/* Finds an enumeration constant by name, in any enum of the graph (kernel enums: the first use
 * builds an index). */
bool type_enumerator(struct type_graph *g, const char *name, int64_t *ret_value, type_id *ret_enum);
/* Find a kernel function's prototype by name ("vfs_read") -> TYPE_FUNC, and a kernel variable's
 * type by name (percpu too). */
bool type_kernel_func(struct type_graph *g, const char *name, type_id *ret);
/* Finds the function in one module ("vmlinux": the kernel proper), with its BTF id there. */
bool type_module_func(struct type_graph *g, const char *module, const char *name, type_id *ret,
		      uint32_t *ret_btf_id);
bool type_kernel_var(struct type_graph *g, const char *name, type_id *ret);
/* Returns the BTF id within vmlinux of a kernel type/func/typedef of this kind and name, for
 * attach_btf_id and kfunc calls. btf_kind is BTF_KIND_*. Returns false when absent. */
bool type_kernel_btf_id(struct type_graph *g, uint32_t btf_kind, const char *name, uint32_t *ret);
/* Calls fn(arg, NAME, func type) for every vmlinux typedef "btf_trace_NAME", in BTF order. The
 * func's params are those of the tracepoint, without the leading void *__data. */
void type_kernel_tracepoints(struct type_graph *g,
			     void (*fn)(void *arg, const char *name, type_id func), void *arg);
/* Finds one tracepoint by name, faster than the walk. */
bool type_kernel_tracepoint(struct type_graph *g, const char *name, type_id *ret_func);

/* --- queries --- */
enum type_kind type_kind(struct type_graph *g, type_id t);
const char *type_tag(struct type_graph *g, type_id t); /* name or tag, "" when anonymous */
type_id type_ref(struct type_graph *g, type_id t);     /* pointee, element, aliased type, result */
uint64_t type_size(struct type_graph *g,
		   type_id t); /* bytes; 0 for void, functions, incomplete; string: strsize */
/* Returns the size without the padding at the end of a struct or union that the D program
 * declares. */
uint64_t type_size_of_members(struct type_graph *g, type_id t);
uint32_t type_align(struct type_graph *g, type_id t);
uint32_t type_int_flags(struct type_graph *g,
			type_id t); /* of TYPE_INT and TYPE_ENUM, after stripping */
uint32_t type_nelems(struct type_graph *g, type_id t);
/* Removes typedefs and qualifiers. A forward declaration becomes the complete type when there is
 * one. */
type_id type_strip(struct type_graph *g, type_id t);
/* Returns the members in order, and *ret_n. Valid for the graph's life. */
const struct type_member *type_members(struct type_graph *g, type_id t, uint32_t *ret_n);
const struct type_enumerator *type_enumerators(struct type_graph *g, type_id t, uint32_t *ret_n);
const struct type_param *type_params(struct type_graph *g, type_id t, uint32_t *ret_n,
				     bool *ret_varargs);
/* Finds a member by name, through anonymous members too. Its offset is from t's start. Forward
 * declarations are completed. */
bool type_find_member(struct type_graph *g, type_id t, const char *name, struct type_member *ret);

bool type_is_integer(struct type_graph *g, type_id t); /* int or enum after stripping */
bool type_is_signed(struct type_graph *g, type_id t);
bool type_is_pointer(struct type_graph *g, type_id t); /* pointer (not array) after stripping */
bool type_is_string(struct type_graph *g, type_id t);
bool type_is_scalar(struct type_graph *g, type_id t); /* integer or pointer */
bool type_is_sou(struct type_graph *g, type_id t);    /* struct or union (forward included) */
/* char array, or pointer to char: stringof() and %s take both by address */
bool type_is_char_array(struct type_graph *g, type_id t);
bool type_is_char_pointer(struct type_graph *g, type_id t);
/* Returns true for the same type after stripping: structurally for pointers/arrays, by name for
 * struct/union/enum of different sources. */
bool type_same(struct type_graph *g, type_id a, type_id b);

/* Returns C text of a declaration: type_name(g, t, "x") -> "int (*x)[4]". name NULL or "": the
 * abstract type. Allocated in a. */
const char *type_name(struct type_graph *g, struct arena *a, type_id t, const char *name);

/* --- new types (C declarations of the D program, derived types) --- */
type_id type_new_pointer(struct type_graph *g, type_id ref); /* the same id for the same ref */
type_id type_new_array(struct type_graph *g, type_id ref, uint32_t nelems);
type_id type_new_qualified(struct type_graph *g, enum type_kind kind, type_id ref);
type_id type_new_typedef(struct type_graph *g, const char *name, type_id ref);
type_id type_new_func(struct type_graph *g, type_id result, const struct type_param *params,
		      uint32_t n, bool varargs);
/* Makes a tag without members. Adding members completes it, and lays out offsets by the x86-64
 * psABI (bit_size 0: ordinary member). name "": anonymous. A member "" of integer type is `int :
 * bit_size`, also with 0. */
type_id type_new_sou(struct type_graph *g, enum type_kind struct_or_union, const char *tag);
void type_add_member(struct type_graph *g, type_id sou, const char *name, type_id type,
		     uint32_t bit_size);
void type_complete(struct type_graph *g, type_id sou);
bool type_is_complete(struct type_graph *g, type_id t);
type_id type_new_enum(struct type_graph *g, const char *tag);
void type_add_enumerator(struct type_graph *g, type_id en, const char *name, int64_t value);
/* Sets D's strsize option, 256 at first. Reduces more than WIRE_STRING_MAX to that. */
void type_set_strsize(struct type_graph *g, int64_t bytes);

#endif
