"""The main job, end to end: say what is sensitive, get an exact mechanism and its certificate, randomize a survey."""

from __future__ import annotations

from collections import Counter

import sfumato as sf
from sfumato.entropy import secure
from sfumato.mechanisms import HadamardResponse, RandomizedResponse, SubsetSelection, UnaryEncoding
from sfumato.mechanisms.draws import BitDraws


def title(text: str) -> None:
    print(f"\n== {text}")


def main() -> None:
    title("1. The policy: 'hiv' and 'cancer' must be deniable, the rest may be told")
    domain = sf.Domain(["none", "flu", "hiv", "cancer"])
    policy = sf.HighLow(domain, sensitive=["hiv", "cancer"], epsilon=1)
    print(policy)
    for value in ("hiv", "none"):
        bound = policy.posterior_odds_bound(value, "flu")
        print(f"   after a report, the odds of {value!r} against 'flu' grow at most {bound:.4g}-fold")

    title("2. Mechanisms that keep classical ε-LDP keep this policy too; their exact risk at n = 10,000")
    classical = sf.Uniform(domain, 1)
    print(
        f"   Uniform implies HighLow: {sf.implies(classical, policy)}; "
        f"HighLow implies Uniform: {sf.implies(policy, classical)}"
    )
    kinds = (RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse)
    mechanisms = [kind(domain, 1) for kind in kinds]
    for mechanism in mechanisms:
        print(
            f"   {mechanism.name:20} expected squared error {mechanism.risk(10_000):.6f}, "
            f"{mechanism.bits} bits a report"
        )

    title("3. The certificate of the best: exact, read from the sampler that runs")
    best = RandomizedResponse(domain, 1)
    assert best.risk(10_000) == min(mechanism.risk(10_000) for mechanism in mechanisms)
    certificate = sf.audit(best, policy).raise_if_violated()
    print(f"   {certificate.summary()}")
    print(f"   evidence: {certificate.evidence}")
    print(
        f"   checked again from its own file: {sf.audit_again(sf.Certificate.from_json(certificate.to_json())).holds}"
    )

    title("4. A broken one is caught: its threshold is one part in 2^64 too high")
    broken = RandomizedResponse(domain, 1, threshold=RandomizedResponse(domain, 1).threshold + 1)
    print(f"   {sf.audit(broken, sf.Uniform(domain, 1)).summary()}")

    title("5. Ten thousand answers, randomized with secure bits and counted")
    truth = {"none": 6000, "flu": 2500, "hiv": 500, "cancer": 1000}
    reports = Counter[int]()
    for value, people in truth.items():
        x = domain.encode_one(value)
        for _ in range(people):
            frame = secure.bits(best.layout.frame_bits)
            reports[best.sample(x, BitDraws(secure.bits, best.layout, frame))] += 1
    own, other = (float(probability) for probability in best.inclusion)
    people = sum(truth.values())
    for x, value in enumerate(domain):
        held = reports[x] / people
        share = (held - other) / (own - other)
        error = (held * (1 - held) / people) ** 0.5 / (own - other)
        print(f"   {value:8} truth {truth[value] / people:.3f}   estimate {share:.3f} ± {1.96 * error:.3f}")


if __name__ == "__main__":
    main()
