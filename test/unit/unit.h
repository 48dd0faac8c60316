/* Included by every unit test: cmocka and the headers that it needs in front of it. */
#ifndef DESCRY_TEST_UNIT_H
#define DESCRY_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
