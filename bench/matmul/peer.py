"""The objective and its gradient in NumPy, written by hand."""


def objective(A, B):
    C = A @ B
    return float((C * C).sum())


def gradient(A, B):
    D = 2.0 * (A @ B)
    return D @ B.T, A.T @ D
