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
    # Ages: a mean, a median and a distribution

    `docs/tutorials/ages.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## The column
    """)
    return


@app.cell
def _():
    import numpy as np
    import pandas as pd

    import sfumato as sf

    rng = np.random.default_rng(7)
    people = pd.DataFrame({"age": np.clip(rng.gamma(5, 6, 30_000) + 13, 17, 90).astype(int)})
    people.loc[0, "age"] = 102
    print(f"mean {people['age'].mean():.2f}, median {people['age'].median():.0f}, {len(people):,} people")
    return np, people, sf


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The policy
    """)
    return


@app.cell
def _(sf):
    ages = sf.Domain.range(17, 91)
    uniform = sf.Uniform(ages, epsilon=1)
    close = sf.Metric(ages, "absolute", "0.1")
    for policy in (uniform, close):
        print(policy.effective_epsilon(20 - 17, 25 - 17), policy.effective_epsilon(20 - 17, 70 - 17))
    return close, uniform


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The question
    """)
    return


@app.cell
def _(sf, uniform):
    plan = sf.plan(uniform, n=30_000, question=sf.Mean(), max_seconds=0)
    for row in plan.rows[:4]:
        print(f"{row.name:13} ± {plan.standard_error(row):.2f}   {row.bits:2} bits   {row.ratio:6.2f}× the bound")
    return


@app.cell
def _(close, sf, uniform):
    for rule in (uniform, close):
        needed = sf.plan(rule, target=0.5, question=sf.Mean(), max_seconds=0)
        print(f"{rule.kind:8} {needed.n:7,} people with {needed.best.name}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Design and audit
    """)
    return


@app.cell
def _(sf, uniform):
    errors = {}
    for question in (None, sf.Mean(), sf.Distribution()):
        candidate = sf.design(uniform, n=30_000, question=question, max_seconds=0)
        for asked in (sf.Mean(), sf.Distribution()):
            run = sf.simulate(candidate, n=30_000, truth="uniform", question=asked)
            errors[candidate.name, asked.name] = run.predicted_answer_rmse
    for (name, answer), error in errors.items():
        print(f"{name:14} {answer:13} ± {error:.4f}")
    return


@app.cell
def _(sf, uniform):
    mechanism = sf.design(uniform, n=30_000, question=sf.Distribution(), max_seconds=0)
    certificate = sf.audit(mechanism, uniform).raise_if_violated()
    print(mechanism.name, mechanism.bits, "bits,", certificate.holds)
    return (mechanism,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Randomize the column
    """)
    return


@app.cell
def _(mechanism, people, sf):
    reports = sf.privatize(mechanism, people["age"], sf.InsecureSeeded(3))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    print(len(reports), "reports")
    return (estimate,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Read the answers
    """)
    return


@app.cell
def _(estimate, sf):
    mean, median = estimate.mean(), estimate.quantile(0.5)
    low, high = mean.interval()
    print(f"mean {mean.value:.1f}, 95% interval {low:.1f} to {high:.1f}")
    print(f"median {median.value}, 95% interval {median.interval()}")
    print(estimate.answers(sf.Ranges({"under 30": (None, 29), "30 to 64": (30, 64), "65 and over": (65, None)})))
    return


@app.cell
def _(estimate, np, people):
    from sfumato.plotting import save

    distribution = estimate.cdf()
    save(distribution.plot(), "ages.svg")
    shares = (people["age"].clip(17, 90).to_numpy()[:, None] <= np.arange(17, 90)).mean(axis=0)
    lower, upper = distribution.interval(0.95, simultaneous=True)
    print(f"the band contains the truth at {np.mean((lower <= shares) & (shares <= upper)):.0%} of the ages")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## A mechanism that answers one question
    """)
    return


@app.cell
def _(people, sf, uniform):
    one_bit = sf.design(uniform, n=30_000, question=sf.Mean(), max_bits=1, max_seconds=0)
    bits = sf.privatize(one_bit, people["age"], sf.InsecureSeeded(2))
    partial = sf.estimate(one_bit, sf.aggregate(one_bit, bits))
    print(one_bit.name, one_bit.bits, "bit: mean", partial.mean())
    try:
        partial.frequencies
    except sf.SfumatoError as refusal:
        print(type(refusal).__name__)
    return


if __name__ == "__main__":
    app.run()
