#include "support/folder.h"
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_folder_create(char path[64])
{
    snprintf(path, 64, "/tmp/clfd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static void join(char full[512], const char *path, const char *name)
{
    ck_assert_int_lt(snprintf(full, 512, "%s/%s", path, name), 512);
}

void test_folder_write(const char *path, const char *name, const char *text)
{
    char full[512];
    FILE *file;

    join(full, path, name);
    file = fopen(full, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}

void test_folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder)) != NULL) {
        char full[512];
        if (entry->d_name[0] == '.')
            continue;
        join(full, path, entry->d_name);
        ck_assert_int_eq(remove(full), 0);
    }
    closedir(folder);
    ck_assert_int_eq(rmdir(path), 0);
}
