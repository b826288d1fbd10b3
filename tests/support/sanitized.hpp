// Whether the address or the thread sanitizer is active, which slows everything down and has its own malloc. The thread
// sanitizer finds nothing in simulated runs: they have one thread.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RILL_TEST_SANITIZED
#endif
#if __has_feature(thread_sanitizer)
#define RILL_TEST_THREAD_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RILL_TEST_SANITIZED
#endif
#if defined(__SANITIZE_THREAD__)
#define RILL_TEST_THREAD_SANITIZED
#endif
