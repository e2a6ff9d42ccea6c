#include <nanobind/nanobind.h>
namespace nb = nanobind;
NB_MODULE(_model, m) { m.doc() = "model"; }
