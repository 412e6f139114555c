/* Where the time of a call goes: emitted code says what it works on, and a clock looks at it from time to time. The clock
   is that of the calling thread's wall time, so waiting for other threads belongs to the loop that waits. */
#ifndef IVERSON_PROFILE_H
#define IVERSON_PROFILE_H

/* In the static block of each thread, where a signal's handler can read it. */
static __thread volatile int32_t iv_mark __attribute__((tls_model("initial-exec")));

#ifdef __linux__

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t *iv_samples;
static int32_t iv_sample_count;
static timer_t iv_clock;

static void iv_sample(int signal)
{
    const int32_t mark = iv_mark;
    (void)signal;
    if (mark >= 0 && mark < iv_sample_count) iv_samples[mark]++;
}

/* Counts into `samples`, one for each mark, every so many nanoseconds; signals go to this thread alone. The status is 0
   where there is such a clock. */
int32_t iv_profile_start(int64_t *samples, int32_t count, int64_t period)
{
    struct sigaction action = {0};
    struct sigevent event = {0};
    struct itimerspec pace = {{period / 1000000000, period % 1000000000}, {period / 1000000000, period % 1000000000}};
    iv_samples = samples;
    iv_sample_count = count;
    iv_mark = 0;
    action.sa_handler = iv_sample;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, NULL)) return 1;
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &iv_clock)) return 1;
    return timer_settime(iv_clock, 0, &pace, NULL) ? 1 : 0;
}

void iv_profile_stop(void)
{
    timer_delete(iv_clock);
    signal(SIGPROF, SIG_IGN);
}

#else

int32_t iv_profile_start(int64_t *samples, int32_t count, int64_t period)
{
    (void)samples, (void)count, (void)period;
    return 1;
}

void iv_profile_stop(void) {}

#endif
#endif
