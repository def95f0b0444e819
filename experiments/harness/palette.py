"""One name, colour and marker per method, in all pictures."""

STYLES = {
    "airbo": ("#0072B2", "o"),
    "MMDGP": ("#E69F00", "P"),
    "MMDGP-nystrom": ("#D55E00", "s"),
    "the paper's MMDGP-nystrom": ("#882255", "d"),
    "the paper's MMDGP-raw-S": ("#999933", "v"),
    "the paper's MMDGP-raw-L": ("#44AA99", "D"),
    "uGP": ("#56B4E9", "^"),
    "ERBF": ("#009E73", "D"),
    "SKL": ("#CC79A7", "v"),
    "GP": ("#555555", "X"),
    "plain GP": ("#555555", "X"),
    "airbo, knowing nothing": ("#56B4E9", "^"),
    "BoTorch": ("#555555", "X"),
    "standard process": ("#555555", "X"),
    "Optuna GPSampler": ("#009E73", "D"),
    "random": ("#BBBBBB", "."),
    "mu + 2 sigma": ("#E69F00", "P"),
    "qLogNEI": ("#555555", "X"),
    "knowledge gradient": ("#009E73", "D"),
    "balanced": ("#0072B2", "o"),
    "BoTorch InputPerturbation": ("#8C564B", "<"),
    "Empirical(20)": ("#A6761D", "o"),
    "Empirical": ("#E69F00", "s"),
    "Nystrom": ("#009E73", "^"),
}
"""By the beginning of a method's name. No picture has models and estimators."""
NAMES = {
    "MMDGP-nystrom(160/10)": "MMDGP-nystrom",
    "the paper's MMDGP-nystrom(160/10)": "the paper's MMDGP-nystrom",
    "MMDGP (default estimator)": "MMDGP",
    "GP": "plain GP",
}
"""What readers see of a method whose results are stored under another name."""
OTHER = ("#BBBBBB", "+")
"""Variants that were tried and have no colour of their own."""


def style(name: str) -> tuple[str, str]:
    """Return colour and marker of a method."""
    known = [start for start in STYLES if name.startswith(start)]
    return STYLES[max(known, key=len)] if known else OTHER


def colour(name: str) -> str:
    return style(name)[0]


def shown(label: str) -> str:
    """Return what readers see of a label: a method, or a method, a comma and its setting."""
    known = [name for name in NAMES if label == name or label.startswith(f"{name}, ")]
    if not known:
        return label
    name = max(known, key=len)
    return NAMES[name] + label.removeprefix(name)
