import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import os
    import tempfile

    import marimo as mo

    os.chdir(tempfile.mkdtemp())  # the notebook writes its files to a new folder
    return (mo,)


@app.cell
def _():
    import subprocess
    from pathlib import Path


    def run(command):
        result = subprocess.run(command, shell=True, capture_output=True, text=True)
        print(result.stdout, result.stderr)
        result.check_returncode()

    return Path, run


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # A survey in ten minutes

    `docs/tutorials/survey.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## State what is sensitive
    """)
    return


@app.cell
def _(Path):
    Path("policy.toml").write_text(
        r"""[domain]
    values = ["none", "flu", "hiv", "cancer", "prefer not to say"]

    [policy]
    kind = "high-low"
    sensitive = ["hiv", "cancer"]
    epsilon = "1"
    """
    )
    return


@app.cell
def _(run):
    run('sfumato check policy.toml')
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Plan: know the error in advance
    """)
    return


@app.cell
def _(run):
    run('sfumato plan policy.toml --n 20000')
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Design and audit the mechanism
    """)
    return


@app.cell
def _(run):
    run('sfumato design policy.toml --n 20000 -o mechanism.json')
    run('sfumato audit mechanism.json --policy policy.toml -o certificate.json')
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Rehearse with invented people
    """)
    return


@app.cell
def _(Path):
    Path("rehearse.py").write_text(
        r"""from pathlib import Path

    import sfumato as sf
    from sfumato.plotting import save

    people = {"none": 10_800, "flu": 5_600, "hiv": 600, "cancer": 1_400, "prefer not to say": 1_600}
    answers = [answer for answer, count in people.items() for _ in range(count)]
    Path("answers.txt").write_text("\n".join(answers) + "\n")

    mechanism = sf.mechanism_from_spec(Path("mechanism.json").read_text())
    reports = sf.privatize(mechanism, answers, sf.InsecureSeeded(1))  # seeded: for a rehearsal only
    print("the first answers:", answers[:3], "and their reports:", reports[:3].tolist())

    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    print(estimate)
    print("sensitive together:", estimate.set_fraction(["hiv", "cancer"]))
    save(estimate.plot(truth=[people[value] / 20_000 for value in estimate.values]), "rehearsal.svg")
    """
    )
    return


@app.cell
def _(run):
    run('python rehearse.py')
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Privatize, count and estimate with commands
    """)
    return


@app.cell
def _(run):
    run('sfumato privatize mechanism.json answers.txt -o reports.sfb')
    run('sfumato aggregate mechanism.json reports.sfb -o counts.json')
    run('sfumato estimate mechanism.json counts.json -o estimate.csv --plot estimate.svg')
    return


if __name__ == "__main__":
    app.run()
