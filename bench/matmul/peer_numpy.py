"""By hand, with the matrix products of BLAS."""


def functions(inputs):
    A, B = inputs["A"], inputs["B"]

    def objective():
        C = A @ B
        return (C * C).sum()

    def gradient():
        D = A @ B
        D *= 2.0
        return D @ B.T, A.T @ D

    return objective, gradient
