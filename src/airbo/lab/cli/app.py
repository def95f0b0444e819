"""All commands, with examples. Heavy imports wait until a command needs them."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

import airbo
from airbo.lab.cli import advice, calibrate, data, experiments, serve
from airbo.lab.cli import file as files
from airbo.lab.cli.command import NumbersMayBeNegative

app = typer.Typer(
    name="airbo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Find the best design when the input you ask for is not the input you get.

    A campaign is one file, campaign.toml, and the experiments in the storage that it names.
    Several people and machines can work on one campaign.

    \b
    airbo init                    write a campaign file
    airbo check                   what the file says, and its mistakes
    airbo ask -n 4                the next designs to try
    airbo tell 3 1.25             what experiment 3 gave
    airbo recommend               the design to use

    \b
    Exit codes: 0 done; 1 not possible (the message says why); 2 wrong usage;
    3 a file has mistakes; 4 the storage or another file cannot be used;
    130 interrupted.
    """,
)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"airbo {airbo.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take options that belong to no command."""


def _add(command: Callable[..., None], *examples: str, **settings: Any) -> None:
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    told = "\n\n".join(" ".join(text.split()) for text in paragraphs)  # lines as wide as the screen
    app.command(help=told, epilog="\n\n".join(["Examples:", *examples]), **settings)(command)


_add(
    files.init,
    "airbo init  (a file to edit)",
    "airbo init --name milling --parameter speed=50:200:m/min --uncertainty speed=normal:2",
    "airbo init --parameter dose=0.1:10:mol%:log --parameter tool=A,B --uncertainty dose=normal:5%",
)
_add(files.check, "airbo check", "airbo check other.toml", "airbo check --data")
_add(
    experiments.ask,
    "airbo ask",
    "airbo ask -n 4 --json",
    "airbo ask --given humidity=63 --given tool=A  (today it is so)",
)
_add(
    experiments.tell,
    "airbo tell 3 1.25  (experiment 3 gave 1.25; 1,25 and, in percent, 62.1% are read too)",
    "airbo tell 3=1.25 4=-1.31  (several at once)",
    "airbo tell speed=120 depth=0.5 1.25  (by its design, asked for or not)",
    "airbo tell 3 1.25 --executed speed=121.3  (the real speed was measured)",
    "airbo tell 3 speed=125 1.25  (you set 125, not the speed that was asked for)",
    "airbo tell 3 1.25 humidity=63  (nobody sets the humidity; it was measured)",
    "airbo tell 3 1.25 --noise 0.3  (its standard deviation is known)",
    "airbo tell 3 1.52 --correct  (it was 1.52, not 1.25)",
    "airbo tell 5 1.1 --uncertainty 'speed = {kind = \"normal\", std = 5.0}'  (another machine)",
    cls=NumbersMayBeNegative,
)
_add(
    experiments.fail,
    'airbo fail 5 --why "the tool broke"',
    "airbo fail 6 7 --gave-up",
)
_add(experiments.undo, "airbo undo", "airbo undo  (again: the change before)")
_add(experiments.exclude, 'airbo exclude 7 --why "the sensor was loose"')
_add(experiments.include, "airbo include 7")
_add(experiments.note, 'airbo note 7 "new batch of steel"')
_add(experiments.status, "airbo status")
_add(
    advice.recommend,
    "airbo recommend",
    "airbo recommend --anywhere --json",
    "airbo recommend --given humidity=63  (the best design for today)",
)
_add(advice.predict, "airbo predict speed=120 depth=0.5")
_add(advice.front_, "airbo front", "airbo front --json", name="front")
_add(
    data.import_,
    "airbo import before.csv",
    'airbo import before.xlsx --map "temp=T [°C]"',
    "airbo import --study sqlite:///study.db milling  (an Optuna study)",
    name="import",
)
_add(
    data.export,
    "airbo export -o experiments.csv  (or .xlsx)",
    "airbo export --json",
    "airbo export --history -o history.csv  (who changed what, and when)",
    "airbo export --damaged -o rescued.csv  (what can be read of a damaged storage)",
)
_add(data.backup, "airbo backup campaign-monday.db")
_add(data.copy, "airbo copy postgresql://ann@host/lab")
_add(advice.report, "airbo report", "airbo report -o milling.html")
_add(
    serve.serve,
    "airbo serve",
    "airbo serve --host 0.0.0.0  (for a tablet; the link holds a token)",
    "airbo serve --host 0.0.0.0 --read-only --port 8001  (to show it)",
)
_add(experiments.run, 'airbo run --command "./experiment {speed} {depth}" --budget 40')
_add(
    calibrate.calibrate,
    "airbo calibrate log.csv",
    "airbo calibrate log.csv --pair speed:N_SET=N_MEAS",
    "airbo calibrate  (is the uncertainty in campaign.toml believable?)",
    "airbo calibrate --environment humidity  (its law, from what was measured)",
)
