//@ cmd: -d parse
syscall::read:return, syscall::write:return
{
	this->size = (int64_t)arg1;
	if (this->size < 0) {
		@failed[probefunc, errno] = count();
	} else if (this->size == 0)
		@empty[probefunc] = count();
	else if (this->size < 4096) {
		@small[probefunc] = quantize(this->size);
		if (execname == "sh")
			trace("sh");
	} else {
		@large[probefunc] = quantize(this->size);
		;
	}
	if (1) ; else { }
	trace(this->size)
}
