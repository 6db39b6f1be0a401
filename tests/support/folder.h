/* folder.h - a folder for a test's files. */
#ifndef TEST_SUPPORT_FOLDER_H
#define TEST_SUPPORT_FOLDER_H

/* Creates an empty folder and writes its path. Fails the running test where that does not work. */
void test_folder_create(char path[64]);

/* Writes `text` as the file `name` of the folder, over what was there. */
void test_folder_write(const char *path, const char *name, const char *text);

/* Removes the folder and its files. */
void test_folder_remove(const char *path);

#endif
