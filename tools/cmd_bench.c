#include "command.h"
bool command_bench(int argc, char **argv, tool_fault *fault)
{
    (void)argc;
    (void)argv;
    return fault_usage(fault, "later");
}
