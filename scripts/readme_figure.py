"""Draw the picture of the README: one survey under classical LDP and under a context-aware policy."""

from __future__ import annotations

import sfumato as sf

PEOPLE = {
    "none": 6_000, "cold": 3_600, "flu": 2_800, "asthma": 2_000, "allergy": 1_800, "back pain": 1_400,
    "migraine": 1_000, "diabetes": 600, "depression": 500, "hiv": 300,
}  # fmt: skip
SENSITIVE = ("depression", "hiv")
EPSILON, SEED = 1, 2

_WIDTH, _ROW, _TOP = 860, 28, 86
_PLOT, _GAP, _LEFT = 330, 36, 136
#: Largest share on the axis.
_AXIS = 0.36

_STYLE = """\
.card{fill:#ffffff;stroke:#d0d7de}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d8dee4}.band{fill:#fbeee0}
.truth{stroke:#1f2328}.classical{stroke:#8a5a00;fill:#8a5a00}.aware{stroke:#0b62b0;fill:#0b62b0}
@media (prefers-color-scheme: dark){
.card{fill:#0d1117;stroke:#3d444d}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#2f353d}.band{fill:#3a2c17}
.truth{stroke:#f0f6fc}.classical{stroke:#e3a33b;fill:#e3a33b}.aware{stroke:#58a6ff;fill:#58a6ff}}"""


def estimates() -> dict[str, sf.Estimate]:
    """Return the estimates of the same survey: every answer hidden, and only the sensitive answers hidden."""
    domain, n = sf.Domain(list(PEOPLE)), sum(PEOPLE.values())
    answers = [answer for answer, count in PEOPLE.items() for _ in range(count)]
    policies = {"classical": sf.Uniform(domain, EPSILON), "aware": sf.HighLow(domain, SENSITIVE, EPSILON)}
    results = {}
    for name, policy in policies.items():
        mechanism = sf.design(policy, n)
        sf.audit(mechanism, policy).raise_if_violated()
        reports = sf.privatize(mechanism, answers, sf.InsecureSeeded(SEED))
        results[name] = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    return results


def draw() -> str:
    """Return the picture as SVG: estimates with 95% intervals next to the true shares, in light and dark colours."""
    height = _TOP + _ROW * len(PEOPLE) + 66
    titles = {
        "classical": ("Classical LDP", "every answer is hidden at ε = 1"),
        "aware": ("Sfumato", "depression and hiv are hidden at ε = 1"),
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img" aria-label="Two charts of the same survey. The intervals of '
        'Sfumato are much shorter than those of classical LDP, for harmless and for sensitive answers.">',
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
    ]
    bottom = _TOP + _ROW * len(PEOPLE)
    first = list(PEOPLE).index(SENSITIVE[0])
    parts.append(
        f'<rect class="band" x="10" y="{_TOP + _ROW * first}" width="{_WIDTH - 20}" '
        f'height="{_ROW * len(SENSITIVE)}" rx="4"/>'
    )
    for row, answer in enumerate(PEOPLE):
        parts.append(_text(_LEFT - 14, _TOP + _ROW * (row + 0.5) + 5, answer, anchor="end"))
    for number, (name, estimate) in enumerate(estimates().items()):
        left = _LEFT + number * (_PLOT + _GAP)
        parts += [_text(left, 36, titles[name][0], size=18, weight=600), _text(left, 60, titles[name][1], ink="faint")]
        parts += _panel(name, estimate, left, bottom)
    parts += [
        f'<path class="truth" d="M{_LEFT} {bottom + 40}v16" stroke-width="2"/>',
        _text(_LEFT + 10, bottom + 53, "true share", size=13, ink="faint"),
        f'<path class="classical" d="M{_LEFT + 110} {bottom + 48}h34" stroke-width="3"/>',
        f'<path class="aware" d="M{_LEFT + 152} {bottom + 48}h34" stroke-width="3"/>',
        _text(_LEFT + 196, bottom + 53, "estimate with its 95% interval", size=13, ink="faint"),
        _text(_LEFT + 420, bottom + 53, "shaded: sensitive answers", size=13, ink="faint"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(name: str, estimate: sf.Estimate, left: float, bottom: float) -> list[str]:
    """Draw the axis of one chart, and for each answer its interval, its estimate and its true share."""
    parts = []
    for percent in (0, 10, 20, 30):
        x = _place(left, percent / 100)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP - 6}V{bottom + 6}"/>')
        parts.append(_text(x, bottom + 22, f"{percent}%", size=12, anchor="middle", ink="faint"))
    low, high = estimate.interval()
    for row, (count, share, a, b) in enumerate(zip(PEOPLE.values(), estimate.frequencies, low, high, strict=True)):
        y = _TOP + _ROW * (row + 0.5)
        x, truth = _place(left, share), _place(left, count / sum(PEOPLE.values()))
        parts += [
            f'<path class="{name}" d="M{_place(left, a):.1f} {y}H{_place(left, b):.1f}" stroke-width="3"/>',
            f'<path class="truth" d="M{truth:.1f} {y - 9}v18" stroke-width="2"/>',
            f'<circle class="{name}" cx="{x:.1f}" cy="{y}" r="4.5"/>',
        ]
    return parts


def _place(left: float, share: float) -> float:
    """Return the horizontal position of a share."""
    return left + _PLOT * min(max(share, 0.0), _AXIS) / _AXIS


def _text(
    x: float, y: float, words: str, *, size: int = 14, anchor: str = "start", ink: str = "ink", weight: int = 400
) -> str:
    return (
        f'<text class="{ink}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{words}</text>'
    )
