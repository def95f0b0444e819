"""The second round of choosing a default: cases and rule, written before any of them was run.

Every case of the first round has been seen, so all of them count as choosing now. A candidate is
chosen by predictions and regrets on the cases for choosing. It is then run once on the cases for
confirming, beside every surrogate with every acquisition that matters.

The rule. The unit of a case is the median regret of random designs. A mean regret below a
thousandth of the unit counts as a thousandth. A candidate becomes the default if, on the cases for
confirming and against the present default,

- the mean over cases of log(mean regret / mean regret of the present default) is below 0, and the
  95% interval of that mean (repeats resampled, paired, within every case) is, too;
- on no case its mean regret is more than 1.5 times as large, unless both are below a hundredth of
  the unit.

A method is "not worse" than another on a case if its mean regret is within 10%, or if the 95%
interval of the paired difference contains 0.
"""

from experiments.paper.optimization import Optimization

N_STEPS = 22
"""Evaluations after the 10 initial ones: 32 in all."""


def _case(name: str, title: str) -> Optimization:
    return Optimization(f"second-{name}", "beyond the paper", title, name, N_STEPS)


CHOOSE_NEW = (
    _case("chirp-exact", "Chirp, exact now and normal later"),
    _case("hartmann-3-exact", "Hartmann in 3 dimensions, exact now and normal later"),
    _case("circuit", "Circuit (6), 5 V wanted"),
    _case("reactor", "Reactor (4), large yield"),
    _case("spring", "Spring (4), 10 N/mm wanted"),
    _case("borehole", "Borehole (8), 60 m³ a year wanted"),
)
"""New cases for choosing."""
CHOOSE_OLD = (
    _case("rkhs", "RKHS function under N(0, 0.01²)"),
    _case("double-peak", "Double peak under beta(0.4, 0.2, 0.1)"),
    _case("cliff", "Cliff under a skewed overshoot"),
    _case("hills", "Hills, hit less precisely on the right"),
    _case("branin", "Branin under a correlated error"),
    _case("push", "Robot push, two modes"),
    _case("hartmann-6", "Hartmann in 6 dimensions under Student's t"),
)
"""Cases of the first round that are run again, with 32 evaluations."""
CONFIRM_NEW = (
    _case("three-bumps-exact", "Three bumps, exact now and normal later"),
    _case("three-bumps", "Three bumps under N(0, 0.1²)"),
    _case("polynomial-exact", "Polynomial, exact now and normal later"),
    _case("piston", "Piston (7), 0.4 s wanted"),
    _case("controller", "Controller (6), 3 kΩ wanted"),
    _case("absorber", "Absorber (5), little vibration"),
    _case("arm", "Robot arm (8), a place wanted"),
)
"""The cases on which the choice is confirmed."""
