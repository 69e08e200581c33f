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
    # Telemetry with sensitive URLs

    `docs/tutorials/telemetry.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## Load the clicks
    """)
    return


@app.cell
def _():
    import numpy as np

    import sfumato as sf
    from sfumato.datasets import page_clicks

    clicks = page_clicks(None)  # or page_clicks(Path("folder")) for the real file
    print(clicks.source)
    top = np.sort(clicks.value)[::-1][:500]
    truth = top / top.sum()
    return np, sf, truth


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Write the policy
    """)
    return


@app.cell
def _(sf):
    urls = [f"/health/{rank}" if rank % 20 == 7 else f"/news/{rank}" for rank in range(1, 501)]
    sensitive = [url for url in urls if url.startswith("/health/")]
    domain = sf.Domain(urls)
    policy = sf.HighLow(domain, sensitive, epsilon=1)
    print(len(sensitive), "of", len(domain), "pages are sensitive")
    return domain, policy, sensitive, urls


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Plan
    """)
    return


@app.cell
def _(policy, sf):
    from sfumato.plotting import plot_plan, save

    n = 500_000
    plan = sf.plan(policy, n)
    print(plan)
    save(plot_plan(policy), "telemetry-plan.svg")
    return (n,)


@app.cell
def _(n, policy, sf):
    mechanism = sf.design(policy, n)
    print(mechanism.name, mechanism.bits, "bits")
    print(sf.audit(mechanism, policy).summary())
    return (mechanism,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Rehearse with the expected distribution
    """)
    return


@app.cell
def _(domain, mechanism, n, sf, truth):
    classical = sf.design(sf.Uniform(domain, 1), n)


    for candidate in (mechanism, classical):
        run = sf.simulate(candidate, n=n, truth=truth, seed=1)
        print(f"{candidate.name:20} total variation {run.tv:.3f}, predicted {run.predicted_tv:.3f}")
    return


@app.cell
def _(n, policy, sf, truth):
    planned = sf.plan(policy, n)
    projected = sf.plan(policy, n, truth=truth, method="simplex")
    print(f"unbiased, equal shares, squared error:      {planned.saving:5.1f} times as many people")
    print(f"projected, these clicks, total variation:   {projected.saving:5.1f} times")
    print(f"total variation {projected.best.shown_tv} instead of {projected.classical.shown_tv} with {n:,} people")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Privatize a column
    """)
    return


@app.cell
def _(mechanism, n, np, sf, truth, urls):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.collecting import read_reports, write_reports

    visits = np.repeat(urls, np.rint(n * truth).astype(int))
    pq.write_table(pa.table({"url": visits}), "visits.parquet")

    column = pq.read_table("visits.parquet").column("url")
    reports = sf.privatize(mechanism, column, sf.InsecureSeeded(1))  # for real people, omit the seed
    half = len(reports) // 2
    write_reports(mechanism, reports[:half], "monday.parquet")
    write_reports(mechanism, reports[half:], "tuesday.parquet")
    return (read_reports,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Count and estimate
    """)
    return


@app.cell
def _(domain, mechanism, read_reports, sensitive, sf, truth):
    counts = [sf.aggregate(mechanism, read_reports(mechanism, f"{day}.parquet")) for day in ("monday", "tuesday")]
    estimate = sf.estimate(mechanism, counts[0].merge(counts[1]))
    print(f"{estimate.n:,} reports")
    print("all health pages:", estimate.set_fraction(sensitive), f"(truth {truth[domain.encode(sensitive)].sum():.4f})")
    print("the most read page:", estimate["/news/1"], f"(truth {truth[0]:.4f})")
    return


if __name__ == "__main__":
    app.run()
