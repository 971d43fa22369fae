"""DQN-SF-PF and its baselines (Figure 2, Table 2)."""
