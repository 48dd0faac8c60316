# doc/d-coverage.md is what the tests say now, and no construct of D is without one.
exec tools/d-coverage --check
