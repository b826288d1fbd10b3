// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.
#pragma once

#if __cplusplus < 202002L
#error "rill: C++20 is missing; compile with -std=c++20"
#include <rill: C++20 is missing; compile with -std=c++20>  // a missing file ends the compilation; #error does not
#endif

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: intrinsics may use these instruction sets
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // also has instructions that compress bytes
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// The inline namespace of everything in `rill`. Its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)
