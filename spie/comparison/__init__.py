"""Does a bonus help on my task? A bare agent, controls and bonuses: chosen on some seeds, confirmed on others."""
