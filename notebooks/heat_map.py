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
    # A private heat map of a city

    `docs/tutorials/heat-map.md` explains this code. `scripts/make_notebooks.py` wrote this notebook from it.

    ## Create the city
    """)
    return


@app.cell
def _():
    import numpy as np

    import sfumato as sf
    from sfumato.plotting import plot_estimate, save

    city = sf.Domain.grid(latitude=(52.4, 52.6), longitude=(13.2, 13.6), rows=9, columns=12)
    places = city.centres()


    def crowd(latitude, longitude, width):
        return np.exp(-(((places - (latitude, longitude)) / (width, 1.5 * width)) ** 2).sum(axis=1))


    truth = crowd(52.52, 13.40, 0.02) + 0.6 * crowd(52.48, 13.30, 0.015) + 0.4 * crowd(52.55, 13.52, 0.02)
    truth /= truth.sum()
    people = np.repeat(places, np.rint(100_000 * truth).astype(int), axis=0)
    print(len(people), "people; the first is at", people[0].round(3), "in cell", city.label(city.encode(people[:1])[0]))
    return city, np, people, plot_estimate, save, sf, truth


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Reveal the district, protect the place
    """)
    return


@app.cell
def _(city, np, people, plot_estimate, save, sf, truth):
    districts = [(row // 3, column // 3) for row, column in city]
    by_district = sf.Blocks(city, blocks=districts, epsilon=1)
    mechanism = sf.design(by_district, n=len(people))
    print(mechanism.name, "of", mechanism.parts[0].name, "in", mechanism.bits, "bits")
    print(sf.audit(mechanism, by_district).holds)


    def draw_map(mechanism):
        reports = sf.privatize(mechanism, people, sf.InsecureSeeded(1))  # for real people, omit the seed
        return sf.estimate(mechanism, sf.aggregate(mechanism, reports), "simplex")


    def misplaced(estimate):
        return float(np.abs(estimate.frequencies - truth).sum()) / 2


    private_map = draw_map(mechanism)
    print(f"misplaced: {misplaced(private_map):.1%} of the people")
    save(plot_estimate(private_map), "heat-map.svg")
    return by_district, draw_map, mechanism, misplaced


@app.cell
def _(city, draw_map, plot_estimate, save, sf):
    exactly = sf.mechanisms.RandomizedResponse(city, "inf")  # reports the cell itself; never do this with real people
    save(plot_estimate(draw_map(exactly)), "heat-map-truth.svg")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Protect by distance
    """)
    return


@app.cell
def _(city, draw_map, misplaced, people, sf):
    by_distance = sf.Metric(city, distance="km", epsilon="0.5")
    blurred = sf.design(by_distance, n=len(people), max_seconds=0)
    print(blurred.name, blurred.bits, "bits", sf.audit(blurred, by_distance).holds)
    print(f"misplaced: {misplaced(draw_map(blurred)):.1%}")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Compare with classical LDP
    """)
    return


@app.cell
def _(by_district, city, draw_map, misplaced, people, sf, truth):
    everywhere = sf.design(sf.Uniform(city, epsilon=1), n=len(people))
    print(f"classical LDP misplaces {misplaced(draw_map(everywhere)):.1%}")
    saving = sf.plan(by_district, n=len(people), truth=truth, method="simplex").saving
    print(f"for the same share of misplaced people, it needs {saving:.0f} times as many people")
    return everywhere, saving


@app.cell
def _(everywhere, mechanism, np, people, saving, sf, truth):
    def rehearse(mechanism, times):
        options = {"n": times * len(people), "truth": truth, "method": "simplex", "one_by_one": False}
        runs = [sf.simulate(mechanism, **options, seed=seed) for seed in range(40)]
        return f"{np.mean([run.tv for run in runs]):.1%} misplaced, squared error {np.mean([run.l2 for run in runs]):.1e}"


    print("districts:                 ", rehearse(mechanism, 1))
    for times in (8, round(saving)):
        print(f"classical, {times:2} times as many:", rehearse(everywhere, times))
    return


if __name__ == "__main__":
    app.run()
