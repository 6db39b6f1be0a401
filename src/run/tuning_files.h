/* tuning_files.h - the tuning rows of a context: those that are shipped, and those of the user's file. */
#ifndef CLFD_TUNING_FILES_H
#define CLFD_TUNING_FILES_H

#include "plan/lookup.h"

/* Reads the shipped rows; and the user's, from the file that CLFD_TUNING names ("" or "none": no file), else from the
 * user's own where there is one. *files needs clfd_tuning_files_free whatever happens. CLFD_ERROR_TUNING_FILE where
 * CLFD_TUNING names a file that is missing or no tuning file; CLFD_ERROR_HOST_MEMORY. What is wrong with the user's own
 * file is a warning. */
clfd_status clfd_tuning_files_read(clfd_tuning_files *files, const clfd_logger *logger);

void clfd_tuning_files_free(clfd_tuning_files *files);

#endif
