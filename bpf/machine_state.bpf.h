/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef DESCRY_BPF_MACHINE_STATE_H
#define DESCRY_BPF_MACHINE_STATE_H

#include "wire/language.h"

/* The state of a walk through frames of code that a language's machine has made. */
struct machine_state {
	u64 data;      /* address of the process's struct wire_language; 0: it has none */
	u64 frames;    /* its frames: WIRE_LANGUAGE_JAVA ...; 0: others */
	u64 addresses; /* not 0: frames are addresses and not words */
};

/* Java's frames (bpf/java.bpf.h). */
struct java_state {
	u64 called; /* the frame before this one was a function of Java, which this one called */
	u64 segments, segment, hop; /* in the map of segments; hop 0: the first of a block */
	u64 at, place;              /* the piece of code; a place in it */
	u64 constant[2], constants, class, name[2]; /* of a Method: wire_language_java_id() */
	u64 bytecodes, nbytecodes;
	u64 rbx, r13;
	u64 around[3];                    /* the instructions around the place */
	u64 words[WIRE_JAVA_FRAME_WORDS]; /* of a frame of the interpreter */
	u64 bytes[64];                    /* of the piece of code, or of a ConstMethod */
};

/* JavaScript's frames (bpf/javascript.bpf.h). */
struct javascript_state {
	u64 maps[WIRE_V8_KINDS];           /* the last Map of each kind that was found valid */
	u64 object[WIRE_V8_MEMBERS];       /* the object read last */
	u64 frame[WIRE_V8_FRAME_WORDS];    /* from rbp - 40 on */
	u64 around[WIRE_V8_PIECES];        /* the instructions around the place */
	u64 table, start, other, function; /* other: another handler begins behind start */
	u64 script, number; /* the script met last, and what wire_language_v8_id() takes of it */
	u64 low, size;      /* the built-in code that the walk met last */
	/* For names that only a function's object has. plain: Maps of functions that have none;
	 * meta: the Map of Maps; name: the key of such names; value: such a name, or what stands
	 * for it; left: pieces of it that are still to be read. */
	u64 plain[WIRE_V8_PLAIN], meta, name, value, left;
	u64 map[WIRE_V8_MAP_WORDS]; /* the Map or characters read last */
};

#endif
