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


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # A survey in pandas

    `docs/tutorials/staff-survey.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## 1. Read the answers
    """)
    return


@app.cell
def _():
    import numpy as np
    import pandas as pd
    import sfumato as sf

    generator = np.random.default_rng(7)
    departments = ["Sales", "Support", "Research", "Legal"]
    answers = ["content", "looking around", "has an offer", "leaving"]
    chances = {"Sales": [0.6, 0.2, 0.1, 0.1], "Support": [0.4, 0.3, 0.2, 0.1], "Research": [0.7, 0.2, 0.05, 0.05], "Legal": [0.5, 0.3, 0.1, 0.1]}
    department = generator.choice(departments, 12_000, p=[0.4, 0.3, 0.2, 0.1])
    rows = pd.DataFrame({"department": department, "answer": [generator.choice(answers, p=chances[d]) for d in department]})
    rows.to_csv("staff.csv", index=False)

    staff = pd.read_csv("staff.csv")
    print(staff.head(4))
    return answers, np, pd, sf, staff


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 2. State the policy
    """)
    return


@app.cell
def _(answers, sf):
    policy = sf.HighLow(sf.Domain(answers), sensitive=answers[1:], epsilon=1)
    print(policy)
    return (policy,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 3. Plan
    """)
    return


@app.cell
def _(policy, sf, staff):
    plan = sf.plan(policy, n=len(staff))
    print(plan.to_pandas()[["mechanism", "risk", "tv", "bits", "classical"]].round(5))
    print(plan.reason)
    return (plan,)


@app.cell
def _(plan, policy, sf):
    mechanism = plan.best.mechanism
    print(sf.audit(mechanism, policy).holds)
    return (mechanism,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 4. Randomize
    """)
    return


@app.cell
def _(mechanism, sf, staff):
    staff["report"] = sf.privatize(mechanism, staff.answer, stream=sf.InsecureSeeded(7))  # for real people, omit the seed
    collected = staff.drop(columns="answer")
    print(collected.head(4))
    return (collected,)


@app.cell
def _(collected, pd):
    collected.to_csv("reports.csv", index=False)
    received = pd.read_csv("reports.csv")
    print(received.dtypes)
    return (received,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 5. Estimate
    """)
    return


@app.cell
def _(mechanism, received, sf):
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, received.report))
    print(estimate.to_pandas(confidence=0.95).round(3))
    return (estimate,)


@app.cell
def _(estimate, np):
    print(estimate["leaving"])
    print(np.round(estimate["leaving"].interval(confidence=0.95), 3))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 6. Compare groups
    """)
    return


@app.cell
def _(mechanism, received, sf):
    counts = {name: sf.aggregate(mechanism, reports) for name, reports in received.groupby("department").report}
    grouped = sf.estimate_groups(mechanism, counts)
    table = grouped.to_pandas()
    print(table[table["value"] == "leaving"].round(3).to_string(index=False))
    print(grouped.difference("Support", "Research").to_pandas().round(3).to_string(index=False))
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## 7. Plot
    """)
    return


@app.cell
def _(estimate, staff):
    from sfumato.plotting import save

    truth = staff.answer.value_counts(normalize=True)
    save(estimate.plot(truth=truth), "staff.svg")
    return


if __name__ == "__main__":
    app.run()
