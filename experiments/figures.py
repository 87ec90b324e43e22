"""Figures 1 to 5 of the paper, and ours: saturation, mask, positions, curves, differences, cost.

Paper: figures 1 and 2 are drawn from our code as it runs, figures 3 to 5 show the heads of our own base model.
Run:   python experiments/figures.py --scale laptop
"""

from repro.figures.draw import main

if __name__ == "__main__":
    main()
