/*
 * A disk that keeps only what was synced. Preloaded (ld.so(8), LD_PRELOAD), it tracks what a process writes to files in
 * the folder DISK_FOLDER, and stores in DISK_STATE what a power loss would leave:
 *
 *   INODE         the file's content when it was last synced
 *   INODE.dirty   a byte for each page, 1 if it was written since
 *   INODE.inode   another link to the file, so that no other file gets its inode number; hidden from the process
 *   names         a line "INODE NAME" for each file that was in the folder when it was last synced
 *
 * DISK_FAULT is "fail END N" or "kill END N". The Nth time that this process syncs a file whose name ends in END, the
 * sync fails, or the process is killed before it. As on Linux, pages that a sync could not write are clean afterwards.
 * The next sync succeeds without them, until they are written again.
 *
 * If DISK_STEPS is set, the process writes a byte to descriptor 3 before each sync and after each rename, and waits until
 * it can read one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page_bytes = 4096 };

static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Returns whether a descriptor belongs to the folder or a file in it, and which. */
static int is_followed(int fd, char *path, struct stat *found) {
  const char *folder = getenv("DISK_FOLDER");
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = folder == NULL ? -1 : readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  size_t start = strlen(folder);
  return strncmp(path, folder, start) == 0 && (path[start] == 0 || path[start] == '/') && fstat(fd, found) == 0;
}

static int open_state(const struct stat *file, const char *end) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%llu%s", getenv("DISK_STATE"), (unsigned long long)file->st_ino, end);
  return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void mark_dirty(int fd, off_t from, off_t to) {
  char path[PATH_MAX], link[64], kept[PATH_MAX];
  struct stat file;
  if (!is_followed(fd, path, &file) || !S_ISREG(file.st_mode)) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  snprintf(kept, sizeof kept, "%s/%llu.inode", getenv("DISK_STATE"), (unsigned long long)file.st_ino);
  if (file.st_nlink > 0) linkat(AT_FDCWD, link, AT_FDCWD, kept, AT_SYMLINK_FOLLOW);
  int dirty = open_state(&file, ".dirty");
  for (off_t page = from / page_bytes; page * page_bytes < to; page++) REAL(pwrite64)(dirty, "\1", 1, page);
  close(dirty);
}

/* Marks pages as clean, and stores the written ones if are_written. */
static void clean(int fd, const struct stat *file, int are_written) {
  char link[64], content[page_bytes], mark;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int from = open(link, O_RDONLY | O_CLOEXEC), to = open_state(file, ""), dirty = open_state(file, ".dirty");
  for (off_t page = 0; are_written && pread(dirty, &mark, 1, page) == 1; page++) {
    if (mark != 1) continue;
    ssize_t count = pread(from, content, sizeof content, page * page_bytes);
    if (count > 0) REAL(pwrite64)(to, content, count, page * page_bytes);
  }
  if (are_written) REAL(ftruncate64)(to, file->st_size);
  REAL(ftruncate64)(dirty, 0);
  close(from), close(to), close(dirty);
}

static void keep_names(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/names", getenv("DISK_STATE"));
  FILE *names = fopen(path, "w");
  DIR *entries = opendir(folder);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (entry->d_type == DT_REG) fprintf(names, "%llu %s\n", (unsigned long long)entry->d_ino, entry->d_name);
  closedir(entries);
  fclose(names);
}

/* Applies DISK_FAULT to this sync, and returns whether the sync must fail. */
static int fails(const char *path) {
  static int count = 0;
  char kind[8], end[64];
  int number;
  const char *fault = getenv("DISK_FAULT");
  if (fault == NULL || sscanf(fault, "%7s %63s %d", kind, end, &number) != 3) return 0;
  size_t length = strlen(path), end_length = strlen(end);
  if (length < end_length || strcmp(path + length - end_length, end) != 0 || ++count != number) return 0;
  if (strcmp(kind, "kill") == 0) raise(SIGKILL);
  return 1;
}

static void wait_for_parent(void) {
  char byte = 0;
  if (getenv("DISK_STEPS") != NULL && REAL(write)(3, &byte, 1) == 1 && read(3, &byte, 1) < 0) abort();
}

static int sync_file(int fd, int (*real)(int)) {
  char path[PATH_MAX];
  struct stat file;
  if (!is_followed(fd, path, &file)) return real(fd);
  wait_for_parent();
  pthread_mutex_lock(&one_by_one);
  int is_failing = fails(path);
  if (S_ISREG(file.st_mode)) clean(fd, &file, !is_failing);
  else if (!is_failing) keep_names(path);
  pthread_mutex_unlock(&one_by_one);
  if (is_failing) errno = EIO;
  return is_failing ? -1 : 0;
}

int fsync(int fd) { return sync_file(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_file(fd, REAL(fdatasync)); }

int rename(const char *from, const char *to) {
  const char *folder = getenv("DISK_FOLDER");
  int result = REAL(rename)(from, to);
  if (result == 0 && folder != NULL && strncmp(to, folder, strlen(folder)) == 0) wait_for_parent();
  return result;
}

ssize_t pwrite64(int fd, const void *content, size_t count, off_t from) {
  ssize_t written = REAL(pwrite64)(fd, content, count, from);
  if (written > 0) mark_dirty(fd, from, from + written);
  return written;
}

ssize_t write(int fd, const void *content, size_t count) {
  off_t from = lseek(fd, 0, SEEK_CUR);
  ssize_t written = REAL(write)(fd, content, count);
  if (written > 0 && from >= 0) mark_dirty(fd, from, from + written);
  return written;
}

int ftruncate64(int fd, off_t size) {
  struct stat file;
  off_t before = fstat(fd, &file) == 0 ? file.st_size : 0;
  int result = REAL(ftruncate64)(fd, size);
  if (result == 0) mark_dirty(fd, size < before ? size : before, size < before ? before : size);
  return result;
}

/* Does not count the link in DISK_STATE, because stores refuse a file with a second name. */
long syscall(long number, ...) {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (int at = 0; at < 6; at++) arguments[at] = va_arg(list, long);
  va_end(list);
  long result = REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  struct statx *file = (struct statx *)arguments[4];
  const char *state = getenv("DISK_STATE");
  if (number != SYS_statx || result != 0 || state == NULL || file->stx_nlink < 2) return result;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%llu.inode", state, (unsigned long long)file->stx_ino);
  if (access(path, F_OK) == 0) file->stx_nlink--;
  return result;
}
