// Processes forked by a test.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

/// Runs `body` in a child and returns its wait status. The child ends by exit, so that its exit handlers run.
inline int status_of_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(1);
    }
    exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

/// Runs `body` in a child, which is then killed as the out-of-memory killer would do it.
inline int killed_after(const std::function<void()>& body) {
  return status_of_child([&] {
    body();
    kill(getpid(), SIGKILL);
  });
}
