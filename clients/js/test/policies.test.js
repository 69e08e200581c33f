// A mechanism that violates its policy is rejected; one that obeys it is accepted.
import assert from "node:assert/strict"
import test from "node:test"
import { disclose, readLevel, readMechanism } from "../sfumato.js"
import { published } from "../testing.js"

const { mechanisms, policies, cases } = published("policies/verdicts.json")

function verdict(spec, document) {
	try {
		return disclose(readMechanism(spec), document).proved ? "proved" : "undecided"
	} catch (error) {
		return error.name
	}
}

test("verdicts equal those of the exact audit", () => {
	const seen = new Set()
	for (const [mechanism, policy, obeyed] of cases) {
		const document = policies[policy], result = verdict(mechanisms[mechanism], document), { kind, distributions } = document.policy
		seen.add(`${kind}: ${result}`)
		// The module cannot decide only for an estimated distribution.
		if (distributions?.["chi-square"] && result === "undecided") continue
		assert.equal(result, obeyed ? "proved" : "PolicyViolated", JSON.stringify([mechanisms[mechanism], document]))
	}
	for (const kind of ["uniform", "high-low", "blocks", "metric", "pairwise", "prior", "secret"]) {
		for (const result of ["proved", "PolicyViolated"]) assert.ok(seen.has(`${kind}: ${result}`), `${kind}: ${result}`)
	}
})

test("a mechanism is accepted under the policy that it was designed for", () => {
	mechanisms.forEach((spec, i) => {
		const estimated = policies[i].policy.distributions?.["chi-square"]
		assert.equal(verdict(spec, policies[i]), estimated ? "undecided" : "proved")
	})
})

/** A mechanism that reports the value itself. */
const identity = {
	mechanism: "table",
	version: 1,
	domain: { product: { sex: { values: ["f", "m"] }, age: { size: 2 } }, order: ["sex", "age"] },
	parameters: { total_bits: 62, weights: [0, 1, 2, 3].map((x) => [0, 1, 2, 3].map((y) => (x === y ? `${2n ** 62n}` : "0"))) },
	report: { encoding: "index", bits: 2 },
	layout: { frame_bits: 32, numbers: [[0, 2], [16, 16]], lanes: 0, planes: 0, planes_start: 0 },
}

test("the identity is rejected under every policy with a requirement", () => {
	const anything = { anything: true }, half = [["1/2", "1/2"], ["1/2", "1/2"]]
	for (const policy of [
		{ kind: "uniform", epsilon: "1/10" },
		{ kind: "uniform", epsilon: "700" },
		{ kind: "high-low", sensitive: [["f", 0]], epsilon: "1" },
		{ kind: "blocks", blocks: [0, 0, 1, 1], epsilon: "1" },
		{ kind: "metric", distance: "discrete", epsilon: "1" },
		{ kind: "pairwise", matrix: [0, 1, 2, 3].map((x) => [0, 1, 2, 3].map((y) => (x === 3 && y === 0 ? "1" : "inf"))) },
		{ kind: "prior", prior: ["1/4", "1/4", "1/4", "1/4"], epsilon: "1" },
		{ kind: "secret", secret: "sex", epsilon: "1", distributions: anything },
		{ kind: "secret", secret: "sex", epsilon: "1", distributions: { known: half } },
	]) assert.equal(verdict(identity, { domain: identity.domain, policy }), "PolicyViolated", JSON.stringify(policy))
	assert.equal(verdict(identity, { domain: identity.domain, policy: { kind: "uniform", epsilon: "inf" } }), "proved")
})

test("malformed policies are rejected", () => {
	for (const policy of [
		{ kind: "prior", prior: ["100", "100", "100", "100"], epsilon: "1", side: "upper" },
		{ kind: "prior", prior: ["2", "-1", "0", "0"], epsilon: "1", side: "upper" },
		{ kind: "prior", prior: ["1/2", "1/2"], epsilon: "1" },
		{ kind: "pairwise", matrix: [["0"]] },
		{ kind: "pairwise", matrix: [0, 1, 2, 3].map(() => ["0", "NaN", "1", "1"]) },
		{ kind: "blocks", blocks: [0, 1], epsilon: "1" },
		{ kind: "metric", distance: "furlongs", epsilon: "1" },
		{ kind: "metric", distance: "absolute", epsilon: "1" },
		{ kind: "high-low", sensitive: ["unknown"], epsilon: "1" },
		{ kind: "uniform" },
		{ kind: "something", epsilon: "1" },
		{ kind: "secret", secret: "name", epsilon: "1", distributions: { anything: true } },
		{ kind: "secret", secret: "sex", epsilon: "1", distributions: {} },
		{ kind: "secret", secret: "sex", epsilon: "1", distributions: { known: [["1/2"], ["1/2"]] } },
		{ kind: "secret", secret: "sex", epsilon: "1", distributions: { "at-least": [["2", "-1"], ["1", "0"]] } },
	]) {
		const result = verdict(identity, { domain: identity.domain, policy })
		assert.ok(["InvalidInput", "UnknownSpec", "PolicyViolated", "TypeError"].includes(result), `${JSON.stringify(policy)}: ${result}`)
	}
})

test("levels are read", () => {
	const levels = { 1: 1, "0.1": 0.1, "3/2": 1.5, "-1/2": -0.5, "ln 3": Math.log(3), "1/2*ln 3": Math.log(3) / 2, "ln 3/2": Math.log(1.5),
		"1+ln 2": 1 + Math.LN2, "-1+ln 5": Math.log(5) - 1, 0: 0, inf: Infinity }
	for (const [written, level] of Object.entries(levels)) assert.ok(Math.abs(readLevel(written) - level) < 1e-14 || readLevel(written) === level, written)
	for (const written of ["", "one", "ln", "1//2", "NaN", "-", "1e3", "ln 0/0", undefined, null, {}]) {
		assert.throws(() => readLevel(written), { name: "InvalidInput", message: /a level must be a number/ })
	}
})
