/* SPDX-License-Identifier: Apache-2.0 */
/* Days of the proleptic Gregorian calendar, counted from 1970-01-01. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "plots/track/store.h"

struct s4d_date s4d_date(int day)
{
    struct s4d_date date = {""};
    time_t t = (time_t)day * 86400;
    struct tm utc;
    if (gmtime_r(&t, &utc))
        strftime(date.text, sizeof date.text, "%Y-%m-%d", &utc);
    return date;
}

int s4d_date_parse(const char *text, int *day)
{
    struct tm utc = {0};
    int year, month, of_month, end = 0;
    if (strlen(text) != 10 || strspn(text, "0123456789-") != 10 ||
        sscanf(text, "%4d-%2d-%2d%n", &year, &month, &of_month, &end) != 3 || end != 10)
        return -1;
    utc.tm_year = year - 1900;
    utc.tm_mon = month - 1;
    utc.tm_mday = of_month;
    time_t t = timegm(&utc);
    if (strcmp(s4d_date((int)(t / 86400)).text, text) != 0)
        return -1; /* February 30 */
    *day = (int)(t / 86400);
    return 0;
}
