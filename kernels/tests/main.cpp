#include "check.h"

int main() {
    using namespace hedgerow::tests;
    for (const Test& test : all()) {
        const int before = failures;
        try {
            test.run();
        } catch (const std::exception& problem) {
            ++failures;
            std::printf("%s: %s\n", test.name, problem.what());
        }
        if (failures != before) std::printf("FAILED %s\n", test.name);
    }
    std::printf("%zu tests, %d failures\n", all().size(), failures);
    return failures != 0;
}
