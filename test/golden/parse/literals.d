//@ cmd: -d parse
BEGIN
{
	x = 0; x = 42; x = 0x2A; x = 052; x = 0XfFfF;
	x = 1u; x = 1U; x = 1l; x = 1L; x = 1ul; x = 1ull; x = 1LL; x = 1llu; x = 0xffffffffffffffff; x = 18446744073709551615;
	x = 'a'; x = '\n'; x = '\''; x = '\\'; x = '\0'; x = '\377'; x = '\x41'; x = 'abc'; x = 'abcdefgh'; x = '"';
	s = ""; s = "plain"; s = "tab\there"; s = "quote \" and \\ slash"; s = "\101\x42\103"; s = "nul\0inside"; s = "\q";
	s = "one " "two "
	    "three";
	s = "// no comment"; s = "/* nor this */";
	s = "äöü";
}
