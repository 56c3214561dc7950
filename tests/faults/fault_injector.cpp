// Makes the n-th allocation, write, read or thread of a program fail, or sends it a signal there. Preloaded:
//   LD_PRELOAD=./libfault_injector.so DCULAB_FAULT=memory:120:once dculab predict ...
// DCULAB_FAULT is KIND:N:HOW, where HOW is `once` (only the n-th fails), `on` (the n-th and all later ones), `short`
// (the n-th write stores half of its bytes, as a disk does that fills up, and later ones fail) or a signal's number.
// DCULAB_FAULT_COUNTS names a file of five 64-bit counts: the calls of each kind, then the calls that failed.
//
// It allocates nothing: it calls glibc's allocator by its other names, and the kernel directly. Calls inside glibc do
// not pass through here, hence fopen, fwrite and fflush beside open and write. Standard error stays whole: messages go
// there.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

enum Kind { memory, write_call, read_call, thread, num_kinds };
constexpr const char* kNames[num_kinds] = {"memory", "write", "read", "thread"};

struct Counts {
  std::atomic<std::uint64_t> calls[num_kinds];
  std::atomic<std::uint64_t> faults;
};
Counts unshared;             // where no file is named
Counts* counts = &unshared;  // in shared memory, so that they outlive any end of the program
bool ready = false;          // false while the libraries start
int kind = num_kinds;        // which calls fail: none
std::uint64_t first = 0;     // the call that fails, from 1
enum { once, on, half } how = once;
int signal_number = 0;  // is sent instead, if not 0

// The C library's function of this name. Libraries that start before this one may ask for it already.
template <typename Function>
Function real(Function, const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  Function function;
  std::memcpy(&function, &found, sizeof found);
  return function;
}

}  // namespace

// A debugger stops here to see which call fails.
extern "C" [[gnu::noinline]] void fault_injected() { asm volatile(""); }

namespace {

// Whether this call of the program is one that fails.
bool fails(Kind called) {
  if (!ready) return false;
  const std::uint64_t number = counts->calls[called].fetch_add(1) + 1;
  if (called != kind || number < first || (how == once && number > first)) return false;
  if (how != half) counts->faults.fetch_add(1);
  fault_injected();
  if (signal_number == 0) return true;
  syscall(SYS_kill, getpid(), signal_number);  // as from outside: whichever thread takes it
  return false;
}

template <typename Result>
Result failed(int error, Result result) {
  errno = error;
  return result;
}

// Of a write that is to fail: whether it stores its first half. Where the n-th call does not, `short` is the same fault
// as `on` and is not counted.
bool stores_half(std::size_t bytes) {
  if (how != half || counts->calls[write_call] != first || bytes < 2) return false;
  counts->faults.fetch_add(1);
  return true;
}

Kind kind_of_open(int flags) { return (flags & O_ACCMODE) == O_RDONLY ? read_call : write_call; }

[[gnu::constructor]] void start() {
  if (const char* name = std::getenv("DCULAB_FAULT_COUNTS"); name != nullptr) {
    const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0));
    const long mapped = syscall(SYS_mmap, nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || mapped == -1) std::abort();
    syscall(SYS_close, file);
    counts = reinterpret_cast<Counts*>(mapped);
  }
  if (const char* fault = std::getenv("DCULAB_FAULT"); fault != nullptr) {
    const char* number = std::strchr(fault, ':');
    const char* manner = number == nullptr ? nullptr : std::strchr(number + 1, ':');
    if (manner == nullptr) std::abort();
    for (int each = 0; each < num_kinds; ++each)
      if (std::strncmp(fault, kNames[each], static_cast<std::size_t>(number - fault)) == 0) kind = each;
    first = std::strtoull(number + 1, nullptr, 10);
    how = std::strcmp(manner + 1, "on") == 0 ? on : std::strcmp(manner + 1, "short") == 0 ? half : once;
    signal_number = std::atoi(manner + 1);
  }
  ready = true;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) noexcept {
  return fails(memory) ? failed<void*>(ENOMEM, nullptr) : __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return fails(memory) ? failed<void*>(ENOMEM, nullptr) : __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  return fails(memory) ? failed<void*>(ENOMEM, nullptr) : __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return fails(memory) ? failed<void*>(ENOMEM, nullptr) : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  void* const found = memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *result = found;
  return 0;
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (fails((flags & MAP_ANONYMOUS) != 0 ? memory : read_call)) return failed(ENOMEM, MAP_FAILED);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  if (fails(kind_of_open(flags))) return failed(EMFILE, -1);
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  return fails(reads ? read_call : write_call) ? failed<FILE*>(EMFILE, nullptr) : real(&fopen, "fopen")(path, mode);
}

ssize_t read(int file, void* bytes, std::size_t count) {
  return fails(read_call) ? failed<ssize_t>(EIO, -1) : syscall(SYS_read, file, bytes, count);
}
ssize_t pread(int file, void* bytes, std::size_t count, off_t offset) {
  return fails(read_call) ? failed<ssize_t>(EIO, -1) : syscall(SYS_pread64, file, bytes, count, offset);
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  if (file != STDERR_FILENO && fails(write_call)) {
    if (!stores_half(count)) return failed<ssize_t>(ENOSPC, -1);
    count /= 2;
  }
  return syscall(SYS_write, file, bytes, count);
}
ssize_t writev(int file, const iovec* parts, int count) {
  if (file != STDERR_FILENO && fails(write_call)) {
    if (count == 0 || !stores_half(parts[0].iov_len)) return failed<ssize_t>(ENOSPC, -1);
    return syscall(SYS_write, file, parts[0].iov_base, parts[0].iov_len / 2);
  }
  return syscall(SYS_writev, file, parts, count);
}
ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  if (fails(write_call)) {
    if (!stores_half(count)) return failed<ssize_t>(ENOSPC, -1);
    count /= 2;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}
std::size_t fwrite(const void* items, std::size_t bytes, std::size_t count, FILE* file) {
  if (file != stderr && fails(write_call)) return failed<std::size_t>(ENOSPC, 0);
  return real(&fwrite, "fwrite")(items, bytes, count, file);
}
int fflush(FILE* file) {
  if (file != stderr && file != nullptr && fails(write_call)) return failed(ENOSPC, EOF);
  return real(&fflush, "fflush")(file);
}
ssize_t sendfile(int to, int from, off_t* offset, std::size_t count) noexcept {
  if (fails(write_call)) return failed<ssize_t>(ENOSPC, -1);
  return syscall(SYS_sendfile, to, from, offset, count);
}
int fsync(int file) { return fails(write_call) ? failed(EIO, -1) : static_cast<int>(syscall(SYS_fsync, file)); }
int fdatasync(int file) { return fails(write_call) ? failed(EIO, -1) : static_cast<int>(syscall(SYS_fdatasync, file)); }
int ftruncate(int file, off_t size) noexcept {
  return fails(write_call) ? failed(EIO, -1) : static_cast<int>(syscall(SYS_ftruncate, file, size));
}
int rename(const char* from, const char* to) noexcept {
  return fails(write_call) ? failed(EIO, -1)
                           : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int link(const char* from, const char* to) noexcept {
  return fails(write_call) ? failed(ENOSPC, -1)
                           : static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return fails(write_call) ? failed(ENOSPC, -1) : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int pthread_create(pthread_t* created, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  return fails(thread) ? EAGAIN : real(&pthread_create, "pthread_create")(created, attributes, run, argument);
}

// What programs with files beyond 2 GiB call, the same functions on 64-bit Linux.
FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));
int open64(const char*, int, ...) __attribute__((alias("open")));
int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
ssize_t pread64(int, void*, std::size_t, off64_t) __attribute__((alias("pread")));
ssize_t pwrite64(int, const void*, std::size_t, off64_t) __attribute__((alias("pwrite")));
ssize_t sendfile64(int, int, off64_t*, std::size_t) noexcept __attribute__((alias("sendfile")));
int ftruncate64(int, off64_t) noexcept __attribute__((alias("ftruncate")));
void* mmap64(void*, std::size_t, int, int, int, off64_t) noexcept __attribute__((alias("mmap")));

}  // extern "C"
