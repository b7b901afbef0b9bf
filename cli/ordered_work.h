#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "anyslot/status.h"

namespace anyslot::cli {

/// Starts a thread; throws std::system_error when the system gives none, as std::jthread does.
using StartThread = std::function<std::jthread(const std::function<void()>&)>;

std::jthread start_thread(const std::function<void()>& body);

/// Calls work(i) for i in [0, size) on up to `concurrency` threads, and done(i) on this thread, in
/// order, each after its work. The first failure of `done` ends it: no further work begins,
/// `stopped` tells so to what is running, and the call returns when that has ended. Fails with
/// kResourceExhausted, before any `done`, when the system gives too few threads. `work` must not
/// throw.
Status run_in_order(size_t size, int concurrency,
                    const std::function<void(size_t, const std::atomic<bool>& stopped)>& work,
                    const std::function<Status(size_t)>& done,
                    const StartThread& start = start_thread);

}  // namespace anyslot::cli
