// Sfumato in the browser: docs/browser-client.md, docs/words-to-decisions.md.
/** @import {Answer, Collection, Decisions, Domain, Group, Layout, Maker, Mechanism, Part, Sample} from "./types" */

const ONE = 1n << 64n, TOTAL = 1n << 62n

/** @param {any} got @returns {never} */
function refuse(what = "", must = "", got, name = "InvalidInput") {
	throw Object.assign(new Error(`${what} must ${must}; got ${JSON.stringify(got)?.slice(0, 99)}`), { name })
}

function randomBytes(count = 0) {
	const bytes = new Uint8Array(count)
	// One call gives at most 64 KiB.
	for (let i = 0; i < count; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536))
	return bytes
}

/** Where in the frame a decision reads, most significant bit first. @param {Layout} layout @param {number} decision */
function field({ numbers, lanes, planes, planes_start }, decision) {
	const lane = decision - numbers.length, [low, width] = numbers[decision] ?? [0, planes]
	const start = planes_start + 64 * planes * Math.floor(lane / 64) + (lane % 64)
	if (lane < lanes) return Array.from({ length: width }, (_, i) => (lane < 0 ? low + width - 1 - i : start + 64 * i))
}

/** Decisions that share a bit are not independent. @param {Layout} layout */
function checkLayout(layout) {
	const taken = new Uint8Array(number(layout.frame_bits, 2 ** 31))
	for (let i = 0, own; (own = field(layout, i)); i++) {
		if (own.length > 64 || own.some((at) => taken[at]++ !== 0)) refuse("fields", "be disjoint", layout)
	}
}

/** Decisions from uniform bits: a frame's, by the layout's fields, then those of the auxiliary stream.
 * @param {(width: number) => bigint} auxiliary @param {Layout} layout @param {Uint8Array} frame @returns {Decisions} */
export function bitDraws(auxiliary, layout, frame) {
	let next = 0
	/** The first bits of a decision, and how many. @returns {[bigint, number]} */
	const bits = (width = 0) => {
		const own = field(layout, next++)
		if (!own) return [auxiliary(width), width]
		return [own.reduce((sum, at) => sum * 2n + BigInt((frame[at >>> 3] >> (at & 7)) & 1), 0n), own.length]
	}
	return {
		bernoulli(n, d) {
			if (d & (d - 1n)) return this.below(d) < n
			const width = d.toString(2).length - 1, [value, read] = bits(Math.min(width, 64))
			const high = n >> BigInt(width - read), low = BigInt.asUintN(width - read, n)
			return value === high ? low > 0n && auxiliary(width - read) < low : value < high
		},
		below(m) {
			let [value, width] = bits(32)
			const among = BigInt(m), whole = 1n << BigInt(width)
			if (among > whole) refuse("a field", `choose among ${m}`, width)
			while ((value * among) % whole < whole % among) value = auxiliary(width)
			return Number((value * among) / whole)
		},
	}
}

/** Coins for all sets; then each is mended to its size, and forced to have a bit, if asked.
 * @param {Decisions} draws @param {number} planes @param {Group[]} groups */
function choose(draws, planes, groups) {
	for (const [set, coin] of groups) set.forEach((_, i) => (set[i] = +draws.bernoulli(coin(), 1n << BigInt(planes))))
	for (const [set, , size, at, bit = 1] of groups) {
		const having = (bit = 1) => set.filter((other) => other === bit).length
		const turn = (bit = 1) => {
			let n = draws.below(having(bit))
			set[set.findIndex((other) => other === bit && !n--)] = 1 - bit
		}
		// An empty set needs no decision.
		if (!size()) set.fill(0)
		while (having() !== size()) turn(+(having() > size()))
		if (size() && at >= 0 && set[at] !== bit) {
			turn(bit)
			set[at] = bit
		}
	}
}

const asNumber = (set = new Uint8Array()) => BigInt("0b" + set.reverse().join(""))

/** Large integers are texts. @param {any} value */
function integer(value, high = ONE, low = 0n) {
	const whole = typeof value === "string" ? /^(0|[1-9]\d*)$/.test(value) : Number.isSafeInteger(value)
	if (whole && BigInt(value) >= low && BigInt(value) <= high) return BigInt(value)
	refuse("a number", `be an integer in [${low}, ${high}]`, value)
}

/** @param {any} value */
const number = (value, high = 0, low = 0) => Number(integer(value, BigInt(high), BigInt(low)))

/** @template T @param {any} list @param {(item: any, i: number) => T} read */
function each(list, read, length = list?.length) {
	if (Array.isArray(list) && list.length === length) return list.map(read)
	refuse("a list", `have ${length} items`, list)
}

/** How many bits hold 0 … n-1. */
const bitsFor = (n = 0n) => (n > 1 ? (n - 1n).toString(2).length : 0)

/** The place of each. @param {any} given */
function sensitive(given, k = 0) {
	const found = each(given, (x) => number(x, k - 1))
	if (found.length && found.every((x, i) => !i || x > found[i - 1])) return new Map(found.map((x, i) => [x, i]))
	refuse("sensitive", "be ascending", given)
}

/** @param {any} given */
function blocksOf(given, k = 0) {
	const members = /** @type {number[][]} */ ([])
	// A new block has the next number.
	const places = each(given, (j, x) => (members[number(j, members.length)] ??= []).push(x) - 1, k)
	return { block: each(given, Number), places, members, blocks: members.length }
}

/** @param {any} p */
function lanesOf(p, n = 0) {
	const planes = number(p.planes, 8, 1), keep = each(p.thresholds, (odds) => integer(odds), n)
	return { planes, keep, coins: each(p.coins, (coin) => integer(coin, 1n << BigInt(planes)), n) }
}

/** @param {Sample} sample @returns {Part} */
const part = (sample, outputs = 0n, bits = bitsFor(outputs), shape = "") =>
	Object.assign(sample, { outputs, bits, shape })

/** What parts may have; -1 is a value that may be told. @type {Record<string, Maker<Part>>} */
const PARTS = {
	"randomized-response": (p, k) => {
		const keep = integer(p.threshold)
		return part((x, draws) => {
			const kept = draws.bernoulli(keep, ONE), other = draws.below(k)
			return BigInt(kept ? x : other)
		}, BigInt(k))
	},
	"hadamard-response": (p, k) => {
		const keep = integer(p.threshold), size = number(p.block_size, 2 ** 32, 2)
		if (size & (size - 1)) refuse("block_size", "be a power of two", size)
		const blocks = number(p.blocks, 2 ** 31, Math.ceil(k / (size - 1)))
		return part((x, draws) => {
			const forced = draws.bernoulli(keep, ONE)
			let column = draws.below(size), block = blocks > 1 ? draws.below(blocks) : 0
			if (forced && x < 0) return -1n
			if (forced) {
				const row = (x % (size - 1)) + 1
				block = Math.floor(x / (size - 1))
				const ones = ((row & column) >>> 0).toString(2).replaceAll("0", "")
				// Turning the row's lowest bit changes the sign.
				if (ones.length % 2) column = (column ^ (row & -row)) >>> 0
			}
			return BigInt(block) * BigInt(size) + BigInt(column)
		}, BigInt(blocks) * BigInt(size))
	},
	"subset-selection": (p, k) => {
		const keep = integer(p.threshold), planes = number(p.planes, 8, 1)
		const size = number(p.size, k - 1, 1), coin = integer(p.coin, 1n << BigInt(planes))
		return part((x, draws) => {
			const forced = draws.bernoulli(keep, ONE), set = new Uint8Array(k)
			choose(draws, planes, [[set, () => coin, () => size, forced ? x : -1]])
			return forced && x < 0 ? -1n : asNumber(set)
		}, 0n, k, `${k} ${planes}`)
	},
}

/** @template T @param {Record<string, T>} known @param {string} name */
function named(known, name) {
	if (Object.hasOwn(known, name)) return known[name]
	refuse("mechanism", `be one of ${Object.keys(known)}`, name, "UnknownSpec")
}

/** @param {Part[]} parts @param {number[]} partOf @param {number[]} places in the part */
function parted(parts, partOf, places) {
	let body = 0, outputs = 0n
	const offsets = parts.map((part) => {
		body = Math.max(body, part.bits)
		outputs += part.outputs
		return outputs - part.outputs
	})
	const shapes = [...new Set(parts.map(({ shape }) => shape))], index = parts.every((part) => part.outputs)
	const sample = /** @type {Sample} */ ((x, draws) => {
		const own = partOf[x], report = parts[own](places[x], draws), open = report < 0
		const told = places.slice(0, x).filter((place) => place < 0).length
		if (index) return open ? outputs + BigInt(told) : offsets[own] + report
		return (BigInt(open ? parts.length + told : own) << BigInt(body)) | (open ? 0n : report)
	})
	return Object.assign(sample, { layoutOf: (x = 0) => shapes.indexOf(parts[partOf[x]].shape) })
}

/** Sensitive values in one part. @param {string} name @returns {Maker} */
const highLow = (name) => (p, k) => {
	const hidden = sensitive(p.sensitive, k), places = Array.from({ length: k }, (_, x) => hidden.get(x) ?? -1)
	// Subsets of one value are numbered.
	const make = PARTS[p.size === 1 ? "randomized-response" : name]
	return parted([make(p, hidden.size)], places.map(() => 0), places)
}

/** Weights over 2^62, as alias tables. @type {Maker} */
function table(p, k) {
	number(p.total_bits, 62, 62)
	const outputs = number(p.weights?.[0]?.length, 1e7, 1), bins = 2 ** bitsFor(BigInt(outputs))
	const capacity = TOTAL / BigInt(bins)
	const rows = each(p.weights, (row) => each(row, (weight) => integer(weight, TOTAL), outputs), k)
	const wrong = rows.find((row) => row.reduce((sum, weight) => sum + weight) !== TOTAL)
	if (wrong) refuse("weights", "sum to 2^62", `${wrong}`)
	return (x, draws) => {
		const left = [...rows[x], ...new Array(bins - outputs).fill(0n)]
		const stay = left.map(() => capacity), alias = [...left.keys()]
		const small = alias.filter((b) => left[b] < capacity).reverse()
		const large = alias.filter((b) => left[b] > capacity).reverse()
		while (small.length && large.length) {
			const b = small.pop() ?? 0, j = large.at(-1) ?? 0
			stay[b] = left[b]
			alias[b] = j
			left[j] -= capacity - left[b]
			if (left[j] <= capacity) large.pop()
			if (left[j] < capacity) small.push(j)
		}
		const bin = draws.below(bins)
		return BigInt(draws.bernoulli(stay[bin], capacity) ? bin : alias[bin])
	}
}

/** One bit a value. @param {number} k @param {(x: number, i: number) => bigint} odds @returns {Sample} */
const unary = (k, odds) => (x, draws) =>
	asNumber(Uint8Array.from({ length: k }, (_, i) => +draws.bernoulli(odds(x, i), ONE)))

/** @type {Record<string, Maker>} */
const MECHANISMS = {
	...PARTS,
	table,
	"binary-optimal": table,
	"prior-binary": table,
	"prior-symmetric": table,
	"secret-randomized-response": table,
	"independent-reporting": table,
	"conditional-reporting": table,
	"conditional-unary": table,
	"utility-optimized-rr": highLow("randomized-response"),
	"high-low-hadamard": highLow("hadamard-response"),
	"high-low-subset": highLow("subset-selection"),
	"unary-encoding": (p, k) => {
		const own = integer(p.own), other = integer(p.other)
		return unary(k, (x, i) => (i === x ? own : other))
	},
	"utility-optimized-rappor": (p, k) => {
		const hidden = sensitive(p.sensitive, k)
		const own = integer(p.own), other = integer(p.other), harmless = integer(p.harmless)
		return unary(k, (x, i) => (hidden.has(i) ? (i === x ? own : other) : i === x ? harmless : 0n))
	},
	block: (p, k) => {
		const { block, places, members, blocks } = blocksOf(p.blocks, k)
		const parts = each(p.kind, (kind, j) => {
			const { mechanism, size, parameters } = p.kinds[kind], own = members[j].length
			return named(PARTS, mechanism)(parameters, number(size, own, own))
		}, blocks)
		return parted(parts, block, places)
	},
	"composed-subsets": (p, k) => {
		const { block, blocks } = blocksOf(p.blocks, k), { planes, keep, coins } = lanesOf(p, 2)
		const sizes = each(p.sizes, (size, i) => number(size, (i ? blocks : k) - 1, 1), 2)
		return (x, draws) => {
			const forced = keep.map((odds) => draws.bernoulli(odds, ONE)), all = new Uint8Array(k + blocks)
			choose(draws, planes, [x, block[x]].map((own, i) =>
				[all.subarray(i * k, k + i * blocks), () => coins[i], () => sizes[i], forced[i] ? own : -1]))
			return asNumber(all)
		}
	},
	"nested-subsets": (p, k) => {
		const { block, places, members, blocks } = blocksOf(p.blocks, k), most = k / blocks
		if (members.some((values) => values.length !== most)) refuse("blocks", "have one size", p.blocks)
		const { planes, keep, coins } = lanesOf(p, 3), high = number(p.high, blocks - 1, 1)
		const sizes = each(p.sizes, (size, i) => number(size, most - 1, 1 - i), 2)
		return (x, draws) => {
			const own = block[x], ownHigh = draws.bernoulli(keep[0], ONE)
			const forced = draws.bernoulli(keep[ownHigh ? 1 : 2], ONE)
			const report = new Uint8Array(k + blocks), set = report.subarray(k)
			const groups = /** @type {Group[]} */ ([[set, () => coins[0], () => high, own, +ownHigh]])
			members.forEach((_, j) => groups.push(
				[new Uint8Array(most), () => coins[2 - set[j]], () => sizes[1 - set[j]], forced && j === own ? places[x] : -1]))
			choose(draws, planes, groups)
			block.forEach((j, value) => (report[value] = groups[j + 1][0][places[value]]))
			return asNumber(report)
		}
	},
}

/** @param {any} given @returns {Domain} */
function readDomain(given) {
	const { values, grid, product, order } = given ?? {}
	if (given?.size) {
		const size = number(given.size, 2 ** 31, 1)
		return { size, place: (value) => (Number.isInteger(value) && value >= 0 && value < size ? value : -1) }
	}
	if (values) {
		const places = new Map(each(values, (label, i) => [JSON.stringify(label), i]))
		return { size: values.length, place: (value) => places.get(JSON.stringify(value)) ?? -1 }
	}
	if (!grid && !product) refuse("domain", "be of a known kind", given, "UnknownSpec")
	const names = grid ? ["row", "column"] : order
	const factors = each(names, (name) => readDomain(grid ? { size: grid[`${name}s`] } : product[name]))
	return {
		size: factors.reduce((all, factor) => all * factor.size, 1),
		place: (value) => factors.reduce((at, factor, i) => {
			const own = factor.place(value?.[Array.isArray(value) ? i : names[i]])
			return at < 0 || own < 0 ? -1 : at * factor.size + own
		}, 0),
	}
}

// JSON, its texts marked s and its numbers n: Python writes 1.0 and 1e+16 where JavaScript does not.
const marked = (text = "") => JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g,
	(token = "") => (token[0] === '"' ? `"s${token.slice(1)}` : `"n${token}"`)))

const hex = (bytes = new Uint8Array()) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

/** @param {any} document marked @returns {string} */
function canonical(document) {
	if (typeof document === "string") return document[0] === "n" ? document.slice(1) : JSON.stringify(document.slice(1))
	if (Array.isArray(document)) return `[${document.map(canonical)}]`
	if (!document || document === true) return String(document)
	return `{${Object.keys(document).sort().map((key) => `${canonical(key)}:${canonical(document[key])}`)}}`
}

/** The mechanism of a spec. @param {any} spec @returns {Mechanism} */
export function readMechanism(spec) {
	const make = named(MECHANISMS, spec.mechanism), layouts = [spec.layout].flat()
	if (spec.version !== 1) refuse(`the version of ${spec.mechanism}`, "be 1", spec.version, "UnknownSpec")
	layouts.forEach(checkLayout)
	const domain = readDomain(spec.domain), sample = make(spec.parameters, domain.size)
	return { ...spec.report, domain, sample, layoutOf: (x) => layouts[sample.layoutOf?.(x) ?? 0] }
}

/** A report's bytes. @param {Mechanism} mechanism @param {bigint} report */
export const serialise = ({ bits }, report) =>
	Uint8Array.from({ length: Math.ceil(bits / 8) }, (_, i) => Number(BigInt.asUintN(8, report >> BigInt(8 * i))))

/** A report of the value with index x. @param {Mechanism} mechanism @param {number} x */
export function privatize(mechanism, x) {
	const layout = mechanism.layoutOf(x), frame = randomBytes(layout.frame_bits / 8)
	const auxiliary = (width = 0) => BigInt.asUintN(width, BigInt(`0x${hex(randomBytes(8))}`))
	return mechanism.sample(x, bitDraws(auxiliary, layout, frame))
}

/** The record of a collection, or all; resolves when changes are on disk. @param {string} [url]
 * @param {(known: any) => any} [change] @returns {Promise<any>} */
const records = (url, change) => new Promise((resolve, reject) => {
	const opening = indexedDB.open("sfumato", 1)
	opening.onupgradeneeded = () => opening.result.createObjectStore("answers", { keyPath: "collection" })
	opening.onerror = () => reject(opening.error)
	opening.onsuccess = () => {
		const database = opening.result
		const transaction = database.transaction("answers", "readwrite", { durability: "strict" })
		const store = transaction.objectStore("answers"), asked = url ? store.get(url) : store.getAll()
		asked.onsuccess = () => {
			const changed = change?.(asked.result)
			if (changed) store.put(changed)
			transaction.oncomplete = () => (database.close(), resolve(changed ?? asked.result))
		}
		transaction.onabort = () => (database.close(), reject(transaction.error))
	}
})

/** Every answer given here. @returns {Promise<Answer[]>} */
export const answers = () => records()

/** Sends the answers that wait; resolves to how many still do. @returns {Promise<number>} */
export const flush = async () => await navigator.locks.request("sfumato", async () => {
	let waiting = 0
	for (const { collection, batch, report, state, token } of await answers()) {
		if (state !== "waiting") continue
		const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) }
		const body = `{"batch":"${batch}","report":${report}}`, signal = AbortSignal.timeout(3e4)
		try {
			const response = await fetch(`${collection}/reports`, { method: "POST", headers, body, signal, credentials: "omit" })
			const { batch: counted, error } = await response.json()
			// A busy collector, or who answers in its place, is asked again.
			if (/408|429|5../.test(`${response.status}`) || (counted !== batch && !error)) throw error
			const outcome = error ? { state: "refused", problem: error } : { state: "sent" }
			await records(collection, (known) => ({ ...known, token: undefined, ...outcome }))
		} catch {
			waiting++
		}
	}
	clearTimeout(timer)
	if (waiting) timer = setTimeout(soon, 2e4)
	return waiting
})

let timer = 0
const soon = () => void flush().catch(() => 0)

/** The collection at an address. @param {string} address @returns {Promise<Collection>} */
export async function openCollection(address) {
	const url = new URL(address, location.href).href
	const response = await fetch(url, { credentials: "omit" }), text = await response.text()
	if (!response.ok) refuse("the collection", "be there", text, "NotFound")
	const document = JSON.parse(text), { smechanism, spolicy } = marked(text)
	const { id, state, submission, mechanism_hash } = document
	// Another spelling is another key, and a second draw.
	if (/[%?#]/.test(url) || !url.endsWith(`/v1/collections/${id}`)) refuse("the address", `end in ${id}`, url)
	const bytes = new TextEncoder().encode(canonical(smechanism))
	const hash = hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))
	if (hash !== mechanism_hash) refuse("mechanism_hash", `be ${hash}`, mechanism_hash, "HashMismatch")
	const mechanism = readMechanism(document.mechanism), { domain, encoding } = mechanism
	return {
		...document,
		url,
		domain,
		answered: () => records(url),
		async answer(value, token) {
			const x = domain.place(value)
			if (x < 0) refuse("the value", "be one of the domain", value)
			if (!(await records(url))) {
				if (state !== "open") refuse("the collection", "be open", state, "NotOpen")
				if (submission !== "open" && !token) refuse("token", "be given", token, "TokenNeeded")
			}
			const answer = await records(url, (known) => {
				// Whatever the value is now: a second draw would be a second release.
				if (known) return known.state === "refused" && token ? { ...known, token, state: "waiting" } : known
				const drawn = privatize(mechanism, x), batch = hex(randomBytes(16))
				const report = encoding === "index" ? `${drawn}` : `"${hex(serialise(mechanism, drawn))}"`
				return { collection: url, mechanism: hash, policy: canonical(spolicy), report, batch, token, state: "waiting" }
			})
			soon()
			return answer
		},
	}
}

if (!isSecureContext) refuse("a page", "come by https", location.origin, "InsecurePage")
addEventListener("online", soon)
soon()
