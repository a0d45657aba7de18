#include <cstdio>
int main() { std::puts("mneme " MNEME_VERSION); }
