#include <sheafnn/bsnn.hpp>

int main() { return 0; }
