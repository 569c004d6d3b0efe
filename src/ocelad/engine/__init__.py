"""Algorithm 1 over metric learners at work: what learns comparisons, compiled where there are kernels."""
