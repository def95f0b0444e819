"""What the Nyström approximation costs: the paper's ablation."""

from airbo.embeddings import Empirical, Nystrom
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import DEFAULT, GP, Method

ABLATION = Optimization(
    "ablation",
    "figure 8",
    "RKHS function under beta(0.4, 0.2, 0.1)",
    "rkhs-beta",
    50,
    methods=(
        Method("MMDGP-nystrom(16/9)", "mmd", Nystrom(16, 9)),
        Method("MMDGP-raw-S(12)", "mmd", Empirical(12)),
        Method("MMDGP-raw-L(16)", "mmd", Empirical(16)),
        GP,
        DEFAULT,
        Method("MMDGP-nystrom(16/9), redrawn", "mmd", Nystrom(16, 9), draws="redrawn"),
        Method("MMDGP-raw-S(12), redrawn", "mmd", Empirical(12), draws="redrawn"),
        Method("MMDGP-raw-L(16), redrawn", "mmd", Empirical(16), draws="redrawn"),
    ),
)
