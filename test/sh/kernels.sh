# descry under Debian's own kernel, in a QEMU guest: the run tests and examples before an older verifier, fbt where there are
# kprobes. Skipped, with the reason, where the guest is missing (test/kernels/run --install fetches its parts).
# timeout: 1800
exec test/kernels/run --build "$BUILD" --install
