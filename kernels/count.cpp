#include <nanobind/nanobind.h>
namespace nb = nanobind;
NB_MODULE(_count, m) { m.doc() = "count"; }
