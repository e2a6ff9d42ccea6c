// Tests without a framework: TEST adds one, CHECK and CHECK_THROWS say what failed and go on, main runs them all.
#pragma once

#include <cstdio>
#include <exception>
#include <vector>

namespace hedgerow::tests {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& all() {
    static std::vector<Test> tests;
    return tests;
}

inline int failures = 0;

inline void expect(bool holds, const char* what, const char* file, int line) {
    if (holds) return;
    ++failures;
    std::printf("%s:%d: %s\n", file, line, what);
}

struct Registered {
    Registered(const char* name, void (*run)()) { all().push_back({name, run}); }
};

}  // namespace hedgerow::tests

#define TEST(name)                                                      \
    static void name();                                                 \
    static const hedgerow::tests::Registered added_##name(#name, name); \
    static void name()
#define CHECK(what) hedgerow::tests::expect((what), #what, __FILE__, __LINE__)
#define CHECK_THROWS(kind, what)                                                     \
    do {                                                                             \
        bool thrown = false;                                                         \
        try {                                                                        \
            (void)(what);                                                            \
        } catch (const kind&) {                                                      \
            thrown = true;                                                           \
        }                                                                            \
        hedgerow::tests::expect(thrown, #what " throws " #kind, __FILE__, __LINE__); \
    } while (false)
