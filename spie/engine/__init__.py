"""How tables run fast: kernels specialised and compiled, lanes over threads, vector code, row-sparse matrices."""
