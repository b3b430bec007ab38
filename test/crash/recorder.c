/*
 * Preloaded into a program: records every write, truncation, unlink and sync of one SQLite database, in the order in which they happen,
 * together with what the program says on standard output. It can make one sync fail as Linux does: the pages that were not synced are
 * marked clean and never written; whether they can still be read depends on the file system. Each descriptor that was open then is told
 * once; a later sync succeeds.
 *
 * RECORD_TRACE    the file that the records are appended to
 * RECORD_FILE     the path of the database
 * RECORD_FAIL     optional: "<file> <n> <how>": sync n of file 0 (database) or 1 (log) fails; how is "dropped" (the old pages are read
 *                 again) or "clean" (the new ones are)
 *
 * A record: op, file, two bytes of padding, length (u32), offset (u64), then `length` bytes if op is W or S.
 *   C created or opened for the first time   W write   T truncate to `offset`   U unlink   Y synced   D folder synced
 *   F sync failed, pages dropped   G sync failed, pages kept as clean   S said on standard output
 * Nothing is really synced: the images are made from the trace, and no sync takes time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct undo {
  struct undo *before;
  off_t offset, size;
  size_t length;
  char old[];
};
struct tracked {
  char path[4096];
  int known;
  dev_t device;
  ino_t inode;
  int syncs, errors;
  struct undo *undo;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tracked files[3];
static struct stat folder;
/* How many errors of its file a descriptor was told of. */
static int told[1 << 16];
static int trace = -1, fail_file = -1, fail_at;
static char fail_how[16];

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("RECORD_FILE"), *to = getenv("RECORD_TRACE"), *fail = getenv("RECORD_FAIL");
  if (path == NULL || to == NULL) return;
  const char *endings[] = {"", "-wal", "-journal"};
  for (int i = 0; i < 3; i++) snprintf(files[i].path, sizeof files[i].path, "%s%s", path, endings[i]);
  char *parent = strdup(path);
  *strrchr(parent, '/') = 0;
  stat(parent, &folder);
  free(parent);
  if (fail != NULL) sscanf(fail, "%d %d %15s", &fail_file, &fail_at, fail_how);
  trace = REAL(open)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void record(char op, int file, uint64_t offset, const void *data, uint32_t length) {
  struct __attribute__((packed)) {
    char op, file, padding[2];
    uint32_t length;
    uint64_t offset;
  } head = {op, (char)file, {0}, length, offset};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)data, data == NULL ? 0 : length}};
  if (writev(trace, parts, 2) < 0) abort();
}

static int find(int fd) {
  struct stat now;
  if (trace < 0 || fstat(fd, &now) != 0) return -1;
  for (int i = 0; i < 3; i++)
    if (files[i].known && files[i].device == now.st_dev && files[i].inode == now.st_ino) return i;
  return -1;
}

static void opened(const char *path, int fd) {
  if (trace < 0 || fd < 0) return;
  for (int i = 0; i < 3; i++) {
    if (strcmp(path, files[i].path) != 0) continue;
    pthread_mutex_lock(&lock);
    struct stat now;
    if (find(fd) < 0 && fstat(fd, &now) == 0) {
      files[i].known = 1, files[i].device = now.st_dev, files[i].inode = now.st_ino;
      record('C', i, (uint64_t)now.st_size, NULL, 0);
    }
    told[fd] = files[i].errors;
    pthread_mutex_unlock(&lock);
  }
}

static void forget(struct tracked *file) {
  while (file->undo != NULL) {
    struct undo *one = file->undo;
    file->undo = one->before;
    free(one);
  }
}

/* What is there now, to be put back if the sync fails. */
static void remember(int i, int fd, off_t offset, size_t length) {
  struct stat now;
  fstat(fd, &now);
  struct undo *one = malloc(sizeof *one + length);
  one->before = files[i].undo, one->offset = offset, one->size = now.st_size;
  ssize_t got = pread(fd, one->old, length, offset);
  one->length = got < 0 ? 0 : (size_t)got;
  files[i].undo = one;
}

static void drop(int i) {
  int fd = REAL(open)(files[i].path, O_RDWR | O_CLOEXEC);
  for (struct undo *one = files[i].undo; one != NULL; one = one->before) {
    if (REAL(pwrite)(fd, one->old, one->length, one->offset) < 0) abort();
    if (REAL(ftruncate)(fd, one->size) < 0) abort();
  }
  /* Not closed: that would take away the locks that SQLite holds on the file. */
}

static int synced(int fd) {
  struct stat now;
  if (trace < 0 || fstat(fd, &now) != 0) return 0;
  pthread_mutex_lock(&lock);
  int i = find(fd), failed = 0;
  if (now.st_dev == folder.st_dev && now.st_ino == folder.st_ino) record('D', 0, 0, NULL, 0);
  if (i >= 0) {
    int fails = i == fail_file && ++files[i].syncs == fail_at;
    int dropped = strcmp(fail_how, "dropped") == 0;
    if (fails && dropped) drop(i);
    record(fails ? (dropped ? 'F' : 'G') : 'Y', i, 0, NULL, 0);
    forget(&files[i]);
    files[i].errors += fails;
    failed = told[fd] != files[i].errors;
    told[fd] = files[i].errors;
  }
  pthread_mutex_unlock(&lock);
  if (failed) errno = EIO;
  return failed ? -1 : 0;
}

int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  if (trace < 0) return REAL(pwrite)(fd, data, length, offset);
  pthread_mutex_lock(&lock);
  int i = find(fd);
  if (i >= 0) remember(i, fd, offset, length);
  ssize_t written = REAL(pwrite)(fd, data, length, offset);
  if (i >= 0 && written > 0) record('W', i, (uint64_t)offset, data, (uint32_t)written);
  pthread_mutex_unlock(&lock);
  return written;
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) { return pwrite(fd, data, length, offset); }

ssize_t write(int fd, const void *data, size_t length) {
  if (trace < 0) return REAL(write)(fd, data, length);
  pthread_mutex_lock(&lock);
  int i = find(fd);
  if (i >= 0) abort(); /* SQLite writes with an offset; anything else would escape the record. */
  if (fd == 1) record('S', 0, 0, data, (uint32_t)length);
  pthread_mutex_unlock(&lock);
  return REAL(write)(fd, data, length);
}

int ftruncate(int fd, off_t size) {
  if (trace < 0) return REAL(ftruncate)(fd, size);
  pthread_mutex_lock(&lock);
  int i = find(fd);
  struct stat now;
  fstat(fd, &now);
  if (i >= 0) remember(i, fd, size, now.st_size > size ? (size_t)(now.st_size - size) : 0);
  int result = REAL(ftruncate)(fd, size);
  if (i >= 0 && result == 0 && now.st_size != size) record('T', i, (uint64_t)size, NULL, 0);
  pthread_mutex_unlock(&lock);
  return result;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int unlink(const char *path) {
  pthread_mutex_lock(&lock);
  int result = REAL(unlink)(path);
  for (int i = 0; i < 3 && trace >= 0; i++) {
    if (result != 0 || strcmp(path, files[i].path) != 0) continue;
    files[i].known = 0;
    forget(&files[i]);
    record('U', i, 0, NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

#define OPEN(name)                                                                                  \
  int name(const char *path, int flags, ...) {                                                      \
    va_list rest;                                                                                   \
    va_start(rest, flags);                                                                          \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                         \
    va_end(rest);                                                                                   \
    int fd = REAL(name)(path, flags, mode);                                                         \
    opened(path, fd);                                                                               \
    return fd;                                                                                      \
  }
OPEN(open)
OPEN(open64)
