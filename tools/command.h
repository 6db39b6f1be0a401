/* command.h - the verbs of the program. argv[0..argc) excludes the program's name and the verb. Each returns false with
 * a fault where it fails; main prints the sentence and exits with its code. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "fault.h"

bool command_devices(int argc, char **argv, tool_fault *fault);
bool command_run(int argc, char **argv, tool_fault *fault);
bool command_verify(int argc, char **argv, tool_fault *fault);
bool command_bench(int argc, char **argv, tool_fault *fault);
bool command_tune(int argc, char **argv, tool_fault *fault);

#endif
