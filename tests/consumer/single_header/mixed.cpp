// Must not compile: the header tree behind the single header.
#include <rill/rill.hpp>
#include <rill/train/clip.hpp>

int main() {}
