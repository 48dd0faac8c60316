# The front door. The build itself is Meson's (meson.build); this file only says what people type.
BUILD ?= build
PREFIX ?= /usr/local
MESON ?= meson
JOBS ?= $(shell nproc)

VERSION = $(shell sed -n "s/^\tversion: '\([^']*\)'.*/\1/p" meson.build)

.PHONY: all deps test-deps demo test install uninstall dist deb bench fuzz clean format check-layers configure prefix

all: configure
	@ninja -C $(BUILD) -j $(JOBS)

deps:
	@tools/install-deps

test-deps:
	@tools/install-deps --test

demo: deps
	@$(MAKE) --no-print-directory all
	@tools/demo $(BUILD)/cmd/descry

# SAN=1: descry itself built with ASan and UBSan.  T="pattern...": only the tests whose name holds a pattern.
test: test-deps
	@(tools/install-runtimes $(BUILD)/runtimes; tools/install-heap-readers $(BUILD)/readers) & \
		$(MAKE) --no-print-directory all && \
		ninja -C $(BUILD) -j $(JOBS) tests $(if $(SAN),test/descry-san); \
		status=$$?; wait; exit $$status
	@tools/run-tests --build $(BUILD) $(if $(SAN),--descry $(BUILD)/test/descry-san) $(T)

# PREFIX counts also when the tree was built for another one before; DESTDIR stands in front of it.
install: prefix
	@$(MAKE) --no-print-directory all
	@DESTDIR="$(DESTDIR)" $(MESON) install -C $(BUILD) --no-rebuild --strip

# What `make install` with the same PREFIX and DESTDIR puts there.
uninstall: prefix
	@$(MAKE) --no-print-directory all
	@MESON="$(MESON)" tools/uninstall $(BUILD) "$(DESTDIR)"

prefix: configure
	@test "$$(sed -n 's/^prefix = //p' $(BUILD)/meson-private/cmd_line.txt)" = "$(PREFIX)" || \
		$(MESON) configure $(BUILD) --prefix "$(PREFIX)"

# The sources of HEAD, as others get them.
dist:
	@mkdir -p $(BUILD)
	@git archive --prefix=descry-$(VERSION)/ HEAD | gzip -9n >$(BUILD)/descry-$(VERSION).tar.gz
	@echo $(BUILD)/descry-$(VERSION).tar.gz

# A Debian package of HEAD, built from a copy of it, checked by lintian.
deb:
	@tools/install-deps --deb
	@tools/deb $(BUILD)

bench: all
	@bench/run $(BUILD)/cmd/descry

# libFuzzer targets, in a build directory of their own: build-fuzz/test/fuzz_interp test/fuzz/corpus/interp; tools/fuzz runs all
fuzz:
	@test -f build-fuzz/build.ninja || CC=clang $(MESON) setup build-fuzz -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C build-fuzz

clean:
	rm -rf $(BUILD) build-fuzz

format:
	@tools/check-format --fix

check-layers:
	@tools/check-layers

# Configures when there is no build directory yet, and again when a source file came or went.
configure:
	@tools/install-deps --check
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix $(PREFIX)
	@tools/list-sources . '*.[cd1-8]' | grep -E '^(src|cmd|dlib|examples|man|test/(unit|fuzz|tracee))/' >$(BUILD)/sources.new
	@cmp -s $(BUILD)/sources.new $(BUILD)/sources || { test ! -f $(BUILD)/sources || \
		$(MESON) setup --reconfigure $(BUILD); mv $(BUILD)/sources.new $(BUILD)/sources; }
