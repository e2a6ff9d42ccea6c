// What a kernel was built by and from, for `hedgerow --version`.
#pragma once

#ifndef HEDGEROW_COMMIT
#define HEDGEROW_COMMIT ""  // built outside of a checkout
#endif

namespace hedgerow {

#if defined(__clang__)
constexpr const char* COMPILER = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* COMPILER = "GCC " __VERSION__;
#elif defined(_MSC_VER)
#define HEDGEROW_SPELLED(number) #number
#define HEDGEROW_NUMBER(number) HEDGEROW_SPELLED(number)
constexpr const char* COMPILER = "MSVC " HEDGEROW_NUMBER(_MSC_VER);
#else
constexpr const char* COMPILER = "an unknown compiler";
#endif

}  // namespace hedgerow
