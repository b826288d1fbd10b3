// Must not compile: includes headers of the header tree after the single header.
#include <rill/rill.hpp>
#include <rill/train/clip.hpp>

int main() {}
