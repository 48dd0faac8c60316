# doc/d-coverage.md agrees with the tests, and every construct of D has a test.
exec tools/d-coverage --check
