//@ cmd: -d parse
provider shop {
	probe order__placed(int id, char *who, uint64_t cents);
	probe order__shipped(struct order *o, int n) : (int n, conninfo_t *o, conninfo_t *o);
	probe tick();
	probe any(void);
};
#pragma D attributes Evolving/Evolving/Common provider shop provider
provider empty { };
