/* SPDX-License-Identifier: Apache-2.0 */
/* S4D_SANITIZED: 1 under AddressSanitizer, where long tests run a part of their cases. */
#ifndef S4D_TESTS_SANITIZED_H
#define S4D_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define S4D_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define S4D_SANITIZED 1
#endif
#endif
#ifndef S4D_SANITIZED
#define S4D_SANITIZED 0
#endif

#endif
