/* What every unit test includes: cmocka and the headers it wants in front of it. */
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
