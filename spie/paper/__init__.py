"""The reproduction: the paper's numbers, its claims and the rule that judges them, and one file for each experiment.

`registry` knows all experiments, `results` what a store has of them, `sections` what a section of the page is made of.
"""
