"""Q-learning on random Fourier features with an intrinsic reward (Figure 4)."""
