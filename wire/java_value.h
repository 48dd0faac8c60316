/* How bpf/java_value.bpf.h reads the arguments of a method of Java, and the text of a String: the
 * places of members, packed into numbers of a D program (src/probe/usdt_java.c).
 *
 * A method that the interpreter begins has a frame: at rbp - 24 its Method, at rbp - 56 the address
 * of its first word (frame_x86.hpp), in Java 21 its distance from rbp in words. The others follow
 * below; a long and a double have two words, and the value is in the second.
 */
#ifndef DESCRY_WIRE_JAVA_VALUE_H
#define DESCRY_WIRE_JAVA_VALUE_H

enum {
	WIRE_JAVA_METHOD_AT = 24,
	WIRE_JAVA_LOCALS_AT = 56,
	WIRE_JAVA_LOCALS_NEAR = 1 << 20, /* a distance is less, an address is not */
	WIRE_JAVA_STATIC = 8,            /* of a Method's access flags */
	/* Kinds that a parameter must have, beside the letters of signatures. */
	WIRE_JAVA_ANY = 0,
	WIRE_JAVA_STRING = 's',
};

/* At rbp - 8 of a frame of descry's library in the JVM (agent/jvm_interpreter.h), which is called
 * in front of the interpreter's entry and has made a frame like the interpreter's; a number that no
 * program has there by chance. */
enum { WIRE_JAVA_ENTERING_AT = 8 };
#define WIRE_JAVA_ENTERING 0xde5c7eed5e7f00d5

/* The byte of a packed number from bit 8 * i on. */
#define WIRE_JAVA_BYTE(packed, i) ((packed) >> 8 * (i)&0xff)

/* Bytes of the number that d_java_arg() gets: places of members; which parameter is wanted (0:
 * `this`) and of which kind. */
enum {
	WIRE_JAVA_METHOD_CONST,
	WIRE_JAVA_METHOD_ACCESS,
	WIRE_JAVA_CONST_CONSTANTS,
	WIRE_JAVA_CONST_SIGNATURE,
	WIRE_JAVA_CONSTANTS_SIZE,
	WIRE_JAVA_SYMBOL_TEXT,
	WIRE_JAVA_WANTED,
	WIRE_JAVA_KIND,
};

/* Bytes of the number that d_java_text() gets: places in a String and in its array; how a reference
 * is written there. */
enum {
	WIRE_JAVA_STRING_VALUE,
	WIRE_JAVA_STRING_CODER, /* 0: Latin-1, 1: UTF-16 */
	WIRE_JAVA_ARRAY_LENGTH,
	WIRE_JAVA_ARRAY_DATA,
	WIRE_JAVA_SHIFT,      /* of a narrow reference; of ZGC: the first of four bits of colour */
	WIRE_JAVA_REFERENCES, /* its upper half: of ZGC with generations, the colour of now */
	/* of ZGC's table of moved objects (ZForwarding): where the number of entries is, behind the
	 * shift of objects' addresses; where the entries begin */
	WIRE_JAVA_PART_ENTRIES,
	WIRE_JAVA_PART_SIZE,
};

/* WIRE_JAVA_REFERENCES. Narrow: 4 bytes, to be shifted and added to a base. ZGC: 8 bytes with a
 * colour. The base is a table of the parts of the heap, 2 MB each, from which objects are moved. */
enum { WIRE_JAVA_WIDE, WIRE_JAVA_NARROW, WIRE_JAVA_COLOURED, WIRE_JAVA_GENERATIONS };
/* ZGC with generations (zAddress.hpp): one of bits 12 to 15 says which generations' objects are
 * where it says, and the address begins behind this bit. The base has the address of the young
 * generation's table, and in its lowest 12 and highest 16 bits how many pages behind it the old
 * one's is. */
enum {
	WIRE_JAVA_COLOUR_AT = 12,
	WIRE_JAVA_OLD_TO_OLD = 0x30, /* both bits: of an old object's reference to an old one */
	WIRE_JAVA_PAGE = 12,
	WIRE_JAVA_ADDRESS = 48,
};
enum {
	WIRE_JAVA_GRANULE = 21,
	WIRE_JAVA_COLOURS = 4,
	WIRE_JAVA_VIEWS = 3,
	WIRE_JAVA_REMAPPED = 4,    /* one of them: the object is where it says */
	WIRE_JAVA_ENTRY_FROM = 46, /* in an entry: bit 0 is 1, the new offset, the old number */
};

#endif
