/* Fits a exp(-b t) + c to points by gradient descent. The gradient comes from the library. */
#include "fit.h"

#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 8, STEPS = 2000 };

static void check(int32_t status)
{
    if (status != FIT_OK) {
        fprintf(stderr, "error %d: %s\n", (int)status, fit_message());
        exit(1);
    }
}

int main(void)
{
    const double t[POINTS] = {0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5};
    const double y[POINTS] = {3.05, 2.01, 1.46, 0.95, 0.79, 0.66, 0.58, 0.57};
    double p[3] = {1.0, 1.0, 0.0}, value, grad[3];

    for (int step = 0; step <= STEPS; step++) {
        check(fit_value_and_grad_loss_wrt_p(POINTS, p, t, y, &value, grad));
        if (step % 500 == 0) printf("step %4d  loss %.6f\n", step, value);
        for (int k = 0; k < 3; k++) p[k] -= 0.1 * grad[k];
    }
    printf("%.3f exp(-%.3f t) + %.3f\n", p[0], p[1], p[2]);

    double f[POINTS];
    check(fit_curve(POINTS, p, t, f));
    for (int i = 0; i < POINTS; i++) printf("%.1f  measured %.2f  fitted %.2f\n", t[i], y[i], f[i]);
    return 0;
}
