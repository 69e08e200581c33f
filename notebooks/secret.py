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
    # A secret attribute

    `docs/tutorials/secret.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## Enter the pilot study
    """)
    return


@app.cell
def _():
    import numpy as np

    import sfumato as sf
    from sfumato.plotting import plot_estimate, save

    people = sf.Domain.product(condition=["no", "yes"], region=["north", "south", "west"])
    pilot = [[340, 260, 240], [40, 30, 90]]
    policy = sf.Secret(people, "condition", 1, sf.ChiSquare(pilot, alpha=0.05))
    least, greatest = policy.distributions.conditional_ranges(1)
    regions = people.factors["region"].labels
    print({name: f"{low:.2f} to {high:.2f}" for name, low, high in zip(regions, least, greatest)})
    return np, people, plot_estimate, policy, regions, save, sf


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Check whether the region may be revealed
    """)
    return


@app.cell
def _(people, policy, sf):
    revealed = [[int(x == y) for y in range(3)] for x in range(3)] * 2
    print(sf.audit(sf.mechanisms.TableMechanism.from_matrix(people, revealed), policy).summary())
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Design a mechanism for both attributes
    """)
    return


@app.cell
def _(people, policy, sf):
    mechanism = sf.design(policy, n=20_000, mechanism="conditional-rr")
    print(sf.audit(mechanism, policy).summary())
    classical = sf.mechanisms.SubsetSelection(people, 1)
    # Exact expected squared errors of both unbiased estimates, if all pairs are equally frequent.
    ratio = classical.risk(1) / mechanism.risk(1)
    print(f"classical LDP needs {ratio:.1f} times as many people, by squared errors of unbiased estimates")
    return (mechanism,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Estimate the joint table
    """)
    return


@app.cell
def _(mechanism, np, people, plot_estimate, policy, save, sf):
    truth = np.array([[0.33, 0.255, 0.235], [0.043, 0.032, 0.105]])
    print("not ruled out by the pilot:", policy.distributions.holds(truth))
    answers = [label for label, share in zip(people, truth.ravel()) for _ in range(round(20_000 * share))]
    reports = sf.privatize(mechanism, answers, sf.InsecureSeeded(1))  # for real people, omit the seed
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    print(estimate)
    figure = plot_estimate(estimate, truth=truth.ravel())
    figure.axes[0].tick_params(axis="x", rotation=20)
    save(figure, "secret.svg")
    return estimate, truth


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Estimate sums and differences
    """)
    return


@app.cell
def _(estimate, regions, truth):
    ill = [("yes", region) for region in regions]
    print("with the condition:", estimate.set_fraction(ill), f"(truth {truth[1].sum():.2f})")
    difference = estimate.linear({("yes", "west"): 1, ("yes", "north"): -1})
    low, high = difference.interval()
    print(f"west minus north, with the condition: {difference}, 95% from {low:.3f} to {high:.3f} (truth 0.062)")
    return


if __name__ == "__main__":
    app.run()
