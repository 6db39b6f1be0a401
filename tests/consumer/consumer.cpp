// consumer.cpp - the same program as C++.
#include "consumer.c"
