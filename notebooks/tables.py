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
    # Tables of people

    `docs/tutorials/tables.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## The file
    """)
    return


@app.cell
def _():
    import numpy as np
    import pandas as pd

    import sfumato as sf

    rng = np.random.default_rng(7)
    n = 30_000
    sex = rng.choice(["f", "m"], n)
    education = rng.choice(["school", "college", "degree"], n, p=[0.5, 0.3, 0.2])
    trade = np.where(education == "degree", "office", rng.choice(["office", "craft", "service"], n))
    job = np.where(rng.random(n) < np.where(sex == "m", 0.8, 0.6), trade, "none")
    age = rng.choice(["17-29", "30-49", "50-90"], n, p=[0.3, 0.4, 0.3])
    pd.DataFrame({"id": range(n), "age": age, "sex": sex, "education": education, "job": job}).to_csv("people.csv", index=False)
    people = pd.read_csv("people.csv")
    print(people.head(3).to_string(index=False))
    return n, pd, people, sf


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The attributes
    """)
    return


@app.cell
def _(sf):
    attributes = {
        "sex": sf.Domain(["f", "m"]),
        "age": sf.Domain(["17-29", "30-49", "50-90"]),
        "education": sf.Domain(["school", "college", "degree"]),
        "job": sf.Domain(["none", "office", "craft", "service"]),
    }
    census = sf.Questionnaire(attributes, epsilon=2)
    print(census.policy.kind, len(census.policy.domain))
    return attributes, census


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The best way to ask
    """)
    return


@app.cell
def _(census, n, sf):
    compared = census.plan(n, question=sf.Marginals(2))
    for way in compared.rows:
        print(f"{way.name:24} {way.risk:.4f}  {way.bits} bits")
    return (compared,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Reports and counts
    """)
    return


@app.cell
def _(census, compared, people, sf):
    mechanism = compared.best.mechanism
    reports = sf.privatize(mechanism, people, stream=sf.InsecureSeeded(7))  # seeded only so that this page can show it
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    print(sf.audit(mechanism, census.policy).holds, len(reports), mechanism.bits)
    return (estimate,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Tables with errors
    """)
    return


@app.cell
def _(estimate):
    tables = estimate.marginals(2)
    print(tables["sex", "job"])
    print("women:", tables["sex"]["sex=f"])
    return (tables,)


@app.cell
def _(attributes, pd, people):
    truth = pd.crosstab(people["sex"], people["job"], normalize="all")[list(attributes["job"])]
    for label, row in truth.iterrows():
        print(label, row.round(4).to_dict())
    return


@app.cell
def _(tables):
    public = tables.consistent(nonnegative=True)
    print(public["sex", "job"].round(3).tolist(), round(float(public["education", "job"].sum()), 6))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Dependence
    """)
    return


@app.cell
def _(tables):
    for pair in (("sex", "job"), ("sex", "age")):
        print(tables[pair].cramers_v())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## One policy per attribute
    """)
    return


@app.cell
def _(attributes, n, sf):
    own = sf.Questionnaire(
        {
            "sex": sf.Uniform(attributes["sex"], 1),
            "age": sf.Graph(attributes["age"], [("17-29", "30-49"), ("30-49", "50-90")], 1),
            "education": sf.Uniform(attributes["education"], 1),
            "job": sf.HighLow(attributes["job"], ["none"], 2),
        }
    )
    plan = own.plan(n, question=sf.Marginals(2))
    print(own.policy.kind, plan.best.name, f"{plan.best.risk:.4f}", sf.audit(plan.best.mechanism, own.policy).holds)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The same on the command line
    """)
    return


@app.cell
def _(Path):
    Path("policy.toml").write_text(
        r"""[domain]
    product = {sex = ["f", "m"], job = ["none", "office", "craft", "service"]}

    [policy]
    kind = "product"

    [policy.attributes.sex]
    kind = "uniform"
    epsilon = 1

    [policy.attributes.job]
    kind = "high-low"
    sensitive = ["none"]
    epsilon = 2
    """
    )
    return


@app.cell
def _(run):
    run('sfumato plan policy.toml --question marginals --n 30000')
    run('sfumato design policy.toml --question marginals -o mechanism.json')
    run('sfumato privatize mechanism.json people.csv --column sex --column job -o reports.parquet')
    run('sfumato aggregate mechanism.json reports.parquet -o counts.json')
    run('sfumato estimate mechanism.json counts.json --question marginals -o tables.csv')
    return


if __name__ == "__main__":
    app.run()
