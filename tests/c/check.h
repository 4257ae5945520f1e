/**
 *  Checks for the test programs, in C99 and C++. Used from the main thread alone.
 *  A program runs its tests and ends with `return check_report();`.
 */
#ifndef UFORM_TESTS_CHECK_H
#define UFORM_TESTS_CHECK_H

#include <stdio.h>

static unsigned check_passed = 0, check_failed = 0, check_faults = 0;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            ++check_faults;                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
        }                                                                                                              \
    } while (0)

#define CHECK_STATUS(expression, expected)                                                                             \
    do {                                                                                                               \
        int const check_status = (expression);                                                                         \
        if (check_status != (expected)) {                                                                              \
            uform_failure_t check_failure;                                                                             \
            uform_last_failure(&check_failure);                                                                        \
            ++check_faults;                                                                                            \
            fprintf(stderr, "%s:%d: %s is %s, not %s (last failure: %s)\n", __FILE__, __LINE__, #expression,           \
                    uform_status_name(check_status), uform_status_name(expected), check_failure.message);              \
        }                                                                                                              \
    } while (0)

static inline void check_run(char const *name, void (*test)(void)) {
    check_faults = 0;
    test();
    if (check_faults) ++check_failed;
    else ++check_passed;
    fprintf(stderr, "%s: %s\n", check_faults ? "FAILED" : "ok", name);
}

#define RUN(test) check_run(#test, test)

static inline int check_report(void) {
    printf("%u passed, %u failed\n", check_passed, check_failed);
    return check_failed != 0;
}

#endif
