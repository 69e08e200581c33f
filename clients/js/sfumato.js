// The browser client of Sfumato: docs/browser-client.md, docs/words-to-decisions.md.
/**
 * @import {Answer, Collection, Component, Decisions, Design, Disclosure, Domain, Factor, Fraction, Group, Kept, Law,
 * Layout, Limits, Maker, Mechanism, Memory, Part, Parted, Problem, Sample, TwoLevels} from "./sfumato.js"
 */

const ONE = 1n << 64n,
	TOTAL = 1n << 62n
/** Tolerance of comparisons. Doubles are accurate to 1e-14, and no draw depends on them. */
const TOLERANCE = 1e-9
/** Maximum values of laws with columns, or whose pairs are compared one by one. */
const MANY_COLUMNS = 4096
/** Maximum entries of a law, other than that of a table, that are compared one by one. */
const MANY_ENTRIES = 2 ** 14
/** Maximum weights of a table that are added up per attribute. */
const MANY_WEIGHTS = 2 ** 16
/** Maximum outputs of a cyclic design, and steps to weigh its sets; both bound the time to open a collection. */
const MANY_OUTPUTS = 2 ** 22,
	MANY_STEPS = 2 ** 28
/** Maximum items of a list, and bits of a frame or a report; both bound the memory that a spec can claim. */
const MANY_ITEMS = 2 ** 24,
	MANY_BITS = 2 ** 26

/** Throws an error. @param {any} got @returns {never} */
function refuse(what = "", must = "", got, name = "InvalidInput") {
	throw Object.assign(new Error(`${what} must ${must}; got ${JSON.stringify(got)?.slice(0, 99)}`), { name })
}

function randomBytes(count = 0) {
	const bytes = new Uint8Array(count)
	// One call returns at most 64 KiB.
	for (let i = 0; i < count; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536))
	return bytes
}

/** Bits of a decision in the frame, most significant first. @param {Layout} layout @param {number} decision */
function field({ numbers, lanes, planes, planes_start }, decision) {
	const lane = decision - numbers.length,
		[low, width] = numbers[decision] ?? [0, planes]
	const start = planes_start + 64 * planes * Math.floor(lane / 64) + (lane % 64)
	if (lane < lanes) return indices(width).map((i) => (lane < 0 ? low + width - 1 - i : start + 64 * i))
}

/** Rejects decisions that share a bit: they are not independent. @param {Layout} layout */
function checkLayout(layout) {
	const taken = new Uint8Array(number(layout.frame_bits, MANY_BITS))
	number(layout.lanes, layout.frame_bits) // lanes of zero bits would never end
	// a partial byte would read as 0
	if (layout.frame_bits % 8) refuse("frame_bits", "be a multiple of 8", layout.frame_bits)
	for (let i = 0, bits; (bits = field(layout, i)); i++) {
		if (bits.length > 64 || bits.some((at) => taken[at]++ !== 0))
			refuse("fields", "be disjoint, of at most 64 bits", layout)
	}
}

/** Makes decisions from the bits of a frame, by the layout's fields, then from the auxiliary stream.
 * @param {(width: number) => bigint} auxiliary @param {Layout} layout @param {Uint8Array} frame @returns {Decisions} */
export function bitDraws(auxiliary, layout, frame) {
	if (8 * frame.length < layout.frame_bits) refuse("a frame", `have ${layout.frame_bits} bits`, 8 * frame.length)
	let next = 0
	/** Reads the first bits of a decision. @returns {[bigint, number]} */
	const bits = (width = 0) => {
		const positions = field(layout, next++)
		if (!positions) return [auxiliary(width), width]
		return [positions.reduce((sum, at) => sum * 2n + BigInt((frame[at >>> 3] >> (at & 7)) & 1), 0n), positions.length]
	}
	/** Draws an integer below m. */
	const uniform = (m = 0n) => {
		let [value, width] = bits(m > 2n ** 32n ? 64 : 32)
		const whole = 1n << BigInt(width)
		if (m > whole) refuse("a field", `have enough bits to choose among ${m}`, width)
		while ((value * m) % whole < whole % m) value = auxiliary(width)
		return (value * m) / whole
	}
	return {
		bernoulli(n, d) {
			if (d & (d - 1n)) return uniform(d) < n
			const width = d.toString(2).length - 1,
				[value, read] = bits(Math.min(width, 64))
			const high = n >> BigInt(width - read),
				low = BigInt.asUintN(width - read, n)
			return value === high ? low > 0n && auxiliary(width - read) < low : value < high
		},
		below: (m) => Number(uniform(BigInt(m))),
	}
}

/** Draws sets: a coin per element, then corrections to the size, and a forced bit where required.
 * @param {Decisions} draws @param {number} planes @param {Group[]} groups */
function choose(draws, planes, groups) {
	for (const [set, coin] of groups) set.forEach((_, i) => (set[i] = +draws.bernoulli(coin(), 1n << BigInt(planes))))
	for (const [set, , size, at, bit = 1] of groups) {
		const having = (bit = 1) => set.filter((other) => other === bit).length
		const turn = (bit = 1) => {
			let n = draws.below(having(bit))
			set[set.findIndex((other) => other === bit && !n--)] = 1 - bit
		}
		// An empty set takes no decision.
		if (!size()) set.fill(0)
		while (having() !== size()) turn(+(having() > size()))
		if (size() && at >= 0 && set[at] !== bit) {
			turn(bit)
			set[at] = bit
		}
	}
}

const asNumber = (set = new Uint8Array()) => BigInt("0b" + set.reverse().join(""))

/** Reads an integer; large ones are strings. @param {any} value */
function integer(value, high = ONE, low = 0n) {
	const whole = typeof value === "string" ? /^(0|[1-9]\d*)$/.test(value) : Number.isSafeInteger(value)
	if (whole && BigInt(value) >= low && BigInt(value) <= high) return BigInt(value)
	refuse("a number", `be an integer from ${low} to ${high}`, value)
}

/** @param {any} value */
const number = (value, high = 0, low = 0) => Number(integer(value, BigInt(high), BigInt(low)))

/** Reads the items of a list. @template T @param {any} list @param {(item: any, i: number) => T} read */
function each(list, read, length = list?.length) {
	if (Array.isArray(list) && list.length === length) return list.map(read)
	refuse("a list", `have ${length} items`, list)
}

const indices = (n = 0) => [
	...Array(n >= 0 && n <= MANY_ITEMS ? n : refuse("the length of a list", `be from 0 to ${MANY_ITEMS}`, n)).keys(),
]

/** Number of bits of 0 … n-1. */
const bitsFor = (n = 0n) => (n > 1 ? (n - 1n).toString(2).length : 0)

/** Maps the values of an ascending list to their positions. @param {any} list */
function ascending(list, k = 0) {
	const values = each(list, (x) => number(x, k - 1))
	if (values.every((x, i) => !i || x > values[i - 1])) return new Map(values.map((x, i) => [x, i]))
	refuse("a list of values", "be indices in ascending order", list)
}

/** @param {any} list */
function blocksOf(list, k = 0) {
	const members = /** @type {number[][]} */ ([])
	// Blocks are numbered in the order of their first values.
	const places = each(list, (j, x) => (members[number(j, members.length)] ??= []).push(x) - 1, k)
	return { block: each(list, Number), places, members, blocks: members.length }
}

/** @param {any} p */
function lanesOf(p, n = 0) {
	const planes = number(p.planes, 8, 1),
		keep = each(p.thresholds, (odds) => integer(odds), n)
	return { planes, keep, coins: each(p.coins, (coin) => integer(coin, 1n << BigInt(planes)), n) }
}

// -- the law of a mechanism --

/** @param {Fraction} fraction @returns {Fraction} */
function reduced([n, d]) {
	let [a, b] = [n, d]
	while (b) [a, b] = [b, a % b]
	return [n / a, d / a]
}

/** @param {Fraction[]} terms @returns {Fraction} */
const sum = (terms) =>
	terms.reduce(([n, d], [m, e]) => (d === e ? [n + m, d] : reduced([n * e + m * d, d * e])), [0n, 1n])

/** ln(n/d) of a largest ratio, which is at least 1. */
const ln = (n = 0n, d = 1n) => (!n ? 0 : d ? Math.max(0, Math.log(Number(n)) - Math.log(Number(d))) : Infinity)

const levelOf = ({ high = 0n, low = 0n }) => ln(high, low)
const total = (/** @type {number[]} */ weights) => weights.reduce((all, weight) => all + weight, 0)
const largest = (/** @type {bigint[]} */ values) => values.reduce((a, b) => (a > b ? a : b))
const least = (/** @type {number[]} */ values) => values.reduce((a, b) => Math.min(a, b), Infinity)
const most = (/** @type {number[]} */ values) => values.reduce((a, b) => Math.max(a, b), 0)

/** The binomial coefficient. */
function choices(n = 0, m = 0) {
	let product = 1n
	for (let i = 0; i < m; i++) product = (product * BigInt(n - i)) / BigInt(i + 1)
	return n < m ? 0n : product
}

/**
 * With probability keep/2^64 uniform over the outputs whose set contains the value (`share` of all), else uniform over
 * all;
 * `empty` of `outputs` sets contain no value.
 * @param {bigint} keep
 * @param {Fraction} share
 * @param {TwoLevels["extremes"]} extremes
 * @returns {TwoLevels}
 */
function mixture(keep, share, extremes, empty = 0n, outputs = 1n) {
	const [n, d] = share,
		low = (ONE - keep) * n,
		high = keep * d + low
	return { keep, high, low, extremes, greatest: [(outputs - empty) * high + empty * low, outputs * ONE * n] }
}

/** Extreme weights of sets with one value. @type {TwoLevels["extremes"]} */
const singles = (weights) => [least(weights), most(weights)]

/** Extreme weights of sets of this size. @param {number} size @returns {TwoLevels["extremes"]} */
const subsets = (size) => (weights) => {
	const sorted = [...weights].sort((a, b) => a - b)
	return [total(sorted.slice(0, size)), total(sorted.slice(-size))]
}

/**
 * Extreme weights of sets, from their weights and numbers of values.
 * @param {Float64Array[][]} blocks
 * @returns {[number, number]}
 */
function extremesOf(blocks, values = 0, more = false) {
	let lightest = Infinity,
		heaviest = 0
	for (const [weights, counts] of blocks)
		weights.forEach((weight, i) => {
			if (counts[i] > 0) lightest = Math.min(lightest, weight)
			if (more || counts[i] < values) heaviest = Math.max(heaviest, weight)
		})
	return [lightest, heaviest]
}

/** Extreme weights of Hadamard sets: twice a weight is the sum of all weights plus their transform.
 * @param {number} size of a block @returns {TwoLevels["extremes"]} */
const columns = (size) => (weights, more) => {
	const width = size - 1,
		blocks = indices(Math.ceil(weights.length / width)).map((j) => weights.slice(j * width, (j + 1) * width))
	return extremesOf(
		blocks.map((block) =>
			[block, block.map(() => 1)].map((values) => {
				const row = new Float64Array(size)
				row.set(values, 1)
				for (let half = 1; half < size; half *= 2)
					for (let i = 0; i < size; i++) {
						if (!(i & half)) [row[i], row[i + half]] = [row[i] + row[i + half], row[i] - row[i + half]]
					}
				return row.map((value) => (value + total(values)) / 2)
			}),
		),
		weights.length,
		more,
	)
}

/**
 * Extreme weights of the sets of a cyclic design; bounds on them if there are many.
 * @param {Design} design
 * @returns {TwoLevels["extremes"]}
 */
const translates =
	({ modulus, size, base }) =>
	(weights, more) => {
		if (weights.length * size * base.length > MANY_STEPS) return [0, total(weights)]
		return extremesOf(
			base.map((block) =>
				[weights, weights.map(() => 1)].map((values) => {
					const row = new Float64Array(modulus)
					values.forEach((value, x) => block.forEach((e) => (row[(x + e) % modulus] += value)))
					return row
				}),
			),
			weights.length,
			more,
		)
	}

/** The law of values hidden within parts; those with place -1 are revealed unless a draw hides them.
 * @param {TwoLevels[]} parts @param {ArrayLike<number>} partOf @param {ArrayLike<number>} places @returns {Law} */
function lawOfParts(parts, partOf, places) {
	const isRevealed = (x = 0) => places[x] < 0 && parts[partOf[x]].keep > 0n,
		revealed = indices(places.length).filter(isRevealed)
	return {
		greatest: sum([
			...parts.map(({ greatest }) => greatest),
			...revealed.map((x) => /** @type {Fraction} */ ([parts[partOf[x]].keep, ONE])),
		]),
		classOf: (x) => 2 * partOf[x] + +(places[x] < 0),
		ratio: (x, other) => (isRevealed(x) || partOf[x] !== partOf[other] ? Infinity : levelOf(parts[partOf[x]])),
		against(prior) {
			const bounds = parts.map(({ high: h, low: l, extremes }, j) => {
				const all = total(prior.filter((_, x) => partOf[x] === j)),
					hidden = prior.filter((_, x) => partOf[x] === j && places[x] >= 0)
				const [light, heavy] = extremes(hidden, hidden.length < prior.length),
					[high, low] = [Number(h), Number(l)]
				const average = (set = 0) => low * (all - set) + high * set
				// Values of other parts have likelihood 0.
				return [
					Math.log(high / average(light)),
					parts.length === 1 ? Math.log(average(heavy) / low) : all ? Infinity : 0,
				]
			})
			const alone = revealed.map((x) => [-Math.log(prior[x]), prior[x] ? Infinity : 0])
			return outer([...bounds, ...alone])
		},
	}
}

/** The law of k values in one part. @param {TwoLevels} two @returns {Law} */
const lawOfOne = (two, k = 0) => lawOfParts([two], new Uint8Array(number(k, MANY_BITS)), new Uint8Array(k))

/**
 * The law of one bit per value. Probabilities over 2^64 that a bit is set: `own` that of the value, `other` that of
 * another one.
 */
function lawOfBits(own = 0n, other = 0n, k = 0) {
	if (own < other) refuse("own", "be at least other", `${own}`)
	// The likelihood of the report without bits, and Σ own·other^(m-1)·(1-other)^(k-m) over the sets of m of k bits.
	// Not reduced, because the numbers have 64·k bits.
	const all = BigInt(k),
		power = other ? (ONE - other) ** (all - 1n) : 1n,
		whole = ONE ** all
	const greatest = /** @type {Fraction} */ (
		other
			? [(ONE - own) * power * other + own * (whole - power * (ONE - other)), other * whole]
			: [ONE - own + own * all, ONE]
	)
	// Every set of values is a report.
	const extremes = /** @type {TwoLevels["extremes"]} */ ((weights) => [least(weights), total(weights) - least(weights)])
	return lawOfOne({ keep: ONE, high: own * (ONE - other), low: other * (ONE - own), extremes, greatest }, k)
}

/** The largest bound of each side. @param {number[][]} bounds */
const outer = (bounds) => [0, 1].map((side) => most(bounds.map((bound) => bound[side])))

/**
 * The likelihoods of all values per report, and their ratios to averages over a prior.
 * @param {(x: number, y: number) => bigint | number} weight
 */
function withColumns(k = 0, outputs = 0, weight) {
	const column = (y = 0) => indices(k).map((x) => Number(weight(x, y)))
	return {
		columns: () => indices(outputs).map(column),
		against: (/** @type {number[]} */ prior) =>
			outer(
				indices(outputs).map((y) => {
					const weights = column(y),
						average = total(weights.map((weight, x) => weight * prior[x]))
					return [Math.log(most(weights) / average) || 0, Math.log(average / least(weights)) || 0]
				}),
			),
	}
}

/**
 * The sum of largest likelihoods of parts with the probabilities weights/units.
 * @param {{ greatest: Fraction }[]} parts
 * @param {bigint[]} weights
 */
const greatestOf = (parts, weights, units = ONE) =>
	sum(parts.map(({ greatest: [n, d] }, i) => [n * weights[i], d * units]))

/** @param {bigint[][]} rows over 2^62 @returns {Law} */
function lawOfTable(rows) {
	const outputs = indices(rows[0].length),
		weights = rows.map((row) => Float64Array.from(row, Number))
	// A ratio over few outputs is not worth the memory.
	const logs = weights.map((row) => row.map(Math.log)),
		cache = new Float64Array(outputs.length > 2 ? rows.length ** 2 : 0).fill(-1)
	const greatest = outputs.reduce((all, y) => all + largest(rows.map((row) => row[y])), 0n)
	return {
		greatest: [greatest, TOTAL],
		classOf: (x) => x,
		...withColumns(rows.length, outputs.length, (x, y) => weights[x][y]),
		ratio(x, other) {
			const place = x * rows.length + other,
				first = logs[x],
				second = logs[other]
			if (cache[place] >= 0) return cache[place]
			let widest = 0
			// If both are impossible, the difference is NaN, and the comparison is false.
			for (let y = 0; y < first.length; y++) if (first[y] - second[y] > widest) widest = first[y] - second[y]
			return (cache[place] = widest)
		},
	}
}

/**
 * The law of weights per report: exact for few values, else with upper bounds on ratios.
 * @param {Fraction} greatest
 * @param {(x: number, y: number) => bigint} weight
 * @param {Law["ratio"]} [bound]
 * @returns {Law}
 */
function lawOfMany(greatest, k = 0, outputs = 0, weight, widest = 0, bound = () => widest) {
	if (k > MANY_COLUMNS) return { greatest, classOf: () => 0, ratio: () => widest }
	if (k * outputs > MANY_ENTRIES)
		return { greatest, classOf: (x) => x, ratio: bound, ...withColumns(k, outputs, weight) }
	return { ...lawOfTable(indices(k).map((x) => indices(outputs).map((y) => weight(x, y)))), greatest }
}

/**
 * The law of two independent reports, of the value and of its block.
 * @param {TwoLevels[]} parts
 * @param {number[]} sizes of the sets
 * @param {number[]} block
 * @param {number[][]} members
 * @returns {Law}
 */
function lawOfBoth([value, label], sizes, block, members) {
	// Number of sets of blocks, by their numbers of blocks and of values.
	const ways = [new Map([[0, 1n]]), ...indices(sizes[1]).map(() => new Map())]
	for (const { length } of members) {
		for (let chosen = sizes[1]; chosen > 0; chosen--) {
			for (const [values, count] of ways[chosen - 1])
				ways[chosen].set(values + length, (ways[chosen].get(values + length) ?? 0n) + count)
		}
	}
	const all = choices(block.length, sizes[0]) * choices(members.length, sizes[1])
	// Pairs of sets in which no value of the one is in a block of the other.
	const apart = [...ways[sizes[1]]].reduce(
		(sum, [values, count]) => sum + count * choices(block.length - values, sizes[0]),
		0n,
	)
	const either = largest([value.high * label.low, value.low * label.high])
	const units = value.greatest[1] * label.greatest[1]
	return {
		greatest: [(all - apart) * value.high * label.high + apart * either, all * units],
		classOf: (x) => block[x],
		ratio: (x, other) =>
			block[x] === block[other] ? levelOf(value) : ln(value.high * label.high, value.low * label.low),
	}
}

/** Likelihoods in and out of the set, in a high and in a low block, relative to the uniform law.
 * @param {bigint[]} keep @param {number[]} sizes of the sets in high and in low blocks @returns {Fraction[][]} */
const levelsOf = (keep, high = 0, sizes, among = 0, blocks = 0) =>
	[high, blocks - high].map((count, low) => {
		const level = (low ? ONE - keep[0] : keep[0]) * BigInt(blocks),
			size = BigInt(sizes[low]),
			forced = size ? keep[1 + low] : 0n
		const units = ONE * BigInt(count) * ONE,
			out = /** @type {Fraction} */ ([level * (ONE - forced), units])
		return [size ? [level * (forced * BigInt(among) + (ONE - forced) * size), units * size] : out, out]
	})

/** @param {Fraction[][]} levels @param {number[]} block @returns {Law} */
function lawOfNested(levels, high = 0, block, blocks = 0) {
	const over = (/** @type {Fraction} */ [n, d], /** @type {Fraction} */ [m, e]) => ln(n * e, d * m)
	const kinds = [0, 1],
		room = [high, blocks - high]
	const within = Math.max(...kinds.map((i) => over(levels[i][0], levels[i][1])))
	const between = Math.max(
		...kinds.flatMap((i) => kinds.filter((j) => i !== j || room[i] > 1).map((j) => over(levels[i][0], levels[j][1]))),
	)
	return {
		greatest: levels.flat().reduce((a, b) => (a[0] * b[1] > b[0] * a[1] ? a : b)),
		classOf: (x) => block[x],
		ratio: (x, other) => (block[x] === block[other] ? within : between),
	}
}

/**
 * The law of shifted patterns: exact if there are few outputs, else that of all sets of these sizes, which bounds it
 * from above.
 * @param {Fraction[][]} levels
 * @param {number[]} block
 * @param {number[]} places in blocks of up to `size` values
 * @param {(pattern: number, block: number) => [number, number[]]} statusOf whether a block is low, and its set
 * @returns {Law}
 */
function lawOfPatterns(levels, high = 0, block, places, blocks = 0, size = 0, count = 0, statusOf) {
	const outputs = count * blocks * size
	if (outputs * block.length > MANY_ENTRIES) return lawOfNested(levels, high, block, blocks)
	const units = levels.flat().reduce((all, [, d]) => all * d, 1n),
		statuses = indices(count * blocks).map((row) => statusOf(Math.floor(row / blocks), row % blocks))
	const law = lawOfTable(
		block.map((j, x) =>
			indices(outputs).map((y) => {
				const pattern = Math.floor(y / (blocks * size)),
					shift = Math.floor(y / size) % blocks
				const [low, set] = statuses[pattern * blocks + ((j - shift + blocks) % blocks)]
				const [n, d] = levels[low][+!set.includes((places[x] - (y % size) + size) % size)]
				return n * (units / d)
			}),
		),
	)
	return { ...law, greatest: [law.greatest[0], units * BigInt(outputs)] }
}

/** A key of SplitMix64 (Steele, Lea, Flood 2014). */
function keyOf(seed = 0n, i = 0) {
	let key = BigInt.asUintN(64, seed + BigInt(i + 1) * 0x9e3779b97f4a7c15n)
	key = BigInt.asUintN(64, (key ^ (key >> 30n)) * 0xbf58476d1ce4e5b9n)
	key = BigInt.asUintN(64, (key ^ (key >> 27n)) * 0x94d049bb133111ebn)
	return key ^ (key >> 31n)
}

/**
 * Returns the positions of the least of `among` keys, ascending. Sorting is stable, so the first of equal keys is less.
 */
export function leastKeys(seed = 0n, first = 0, among = 0, size = 0) {
	const keys = indices(among).map((i) => keyOf(seed, first + i))
	return indices(among)
		.sort((i, j) => (keys[i] < keys[j] ? -1 : +(keys[i] > keys[j])))
		.slice(0, size)
		.sort((i, j) => i - j)
}

// -- cyclic designs --

/** Designs by kind. @type {Record<string, (design: any, prime: number) => Design>} */
const DESIGNS = {
	// Common zeros of a linear recurring sequence over GF(prime) and of its shifts by multiples of the modulus.
	singer: (design, prime) => {
		only(design, "kind prime power dimension polynomial modulus blocks size")
		const power = number(design.power, 22, 1),
			dimension = number(design.dimension, 22, 3),
			n = power * dimension
		const [size, modulus] = indices(dimension - 1).reduce(
			([, sum]) => [sum, number(sum * prime ** power + 1, MANY_OUTPUTS)],
			[0, 1],
		)
		const polynomial = each(design.polynomial, (c, l) => number(c, l < n ? prime - 1 : 1, +(l === n)), n + 1)
		const terms = indices(n).filter((l) => polynomial[l]),
			shifts = indices(power).map((j) => j * modulus)
		const sequence = new Uint32Array(power * modulus + n)
		sequence[n - 1] = 1
		for (let i = 0; i + n < sequence.length; i++) {
			let sum = 0
			for (const l of terms) sum += polynomial[l] * sequence[i + l]
			sequence[i + n] = (prime - (sum % prime)) % prime
		}
		return {
			modulus,
			size,
			base: [Uint32Array.from(indices(modulus).filter((i) => shifts.every((shift) => !sequence[i + shift])))],
		}
	},
	// Cosets of the residues of an order, with or without 0; block j is multiplied by the j-th power of the least
	// primitive root.
	residues: (design, prime) => {
		only(design, "kind prime order cosets zero modulus blocks size")
		const order = number(design.order, prime - 1, 1),
			step = number((prime - 1) / order, prime),
			blocks = order % 2 ? step / 2 : step
		const zero = number(design.zero, 1),
			cosets = number(design.cosets, step, 1),
			size = number(cosets * order + zero, prime - 1, 2)
		number(blocks * prime, MANY_OUTPUTS)
		let powers = [1]
		for (let root = 2; powers.length < prime - 1; root++) {
			powers = [1]
			for (let x = root; x !== 1; x = (x * root) % prime) powers.push(x)
		}
		const blockOf = (j = 0) => powers.filter((_, i) => (i + step - j) % step < cosets).concat(zero ? 0 : [])
		return { modulus: prime, size, base: indices(blocks).map((j) => Uint32Array.from(blockOf(j)).sort()) }
	},
}

/** Rejects unknown keys, such as the sets of a design. @param {any} document */
function only(document, keys = "") {
	for (const key in document) if (!keys.split(" ").includes(key)) refuse("keys", `be among ${keys}`, key)
}

/**
 * Reads a design. Privacy needs `size` different residues in every base block; the rest serves the estimate.
 * @param {any} document
 */
export function readDesign(document) {
	const derive = named(DESIGNS, document?.kind, "the kind of a design"),
		prime = number(document.prime, MANY_OUTPUTS, 2)
	for (let divisor = 2; divisor ** 2 <= prime; divisor++)
		if (prime % divisor === 0) refuse("prime", "be a prime number", prime)
	const design = derive(document, prime),
		{ modulus, size, base } = design
	const right = base.every((block) => block.length === size && block.every((e, i) => !i || e > block[i - 1]))
	if (right && document.modulus === modulus && document.blocks === base.length && document.size === size) return design
	refuse("a design", `have modulus ${modulus} and ${base.length} base blocks of ${size} residues`, document)
}

/** Shifts of ascending sets with none of the first k residues. @param {ArrayLike<number>[]} sets */
const emptyShifts = (sets, v = 0, k = 0) =>
	BigInt(total(sets.flatMap((set) => Array.from(set, (e, i) => Math.max((set[i + 1] ?? set[0] + v) - e - k, 0)))))

// -- samplers --

/** A sampler with its law. @param {Law} law @param {Sample} sample */
const withLaw = (law, sample) => Object.assign(sample, { law })

/** @param {TwoLevels} levels @param {Sample} sample @returns {Part} */
const part = (levels, sample, k = 0, outputs = 0n, bits = bitsFor(outputs), shape = "", size = 0) =>
	Object.assign(sample, { levels, outputs, bits, shape, size, law: lawOfOne(levels, k) })

/** Mechanisms of parts; the value -1 may be revealed. @type {Record<string, Maker<Part>>} */
const PARTS = {
	"randomized-response": (p, k) => {
		const keep = integer(p.threshold),
			levels = mixture(keep, [1n, BigInt(k)], singles)
		const mechanism = part(
			levels,
			(x, draws) => {
				const truthful = draws.bernoulli(keep, ONE),
					other = draws.below(k)
				return BigInt(truthful ? x : other)
			},
			k,
			BigInt(k),
			bitsFor(BigInt(k)),
			"",
			1,
		)
		// Of an attribute, it is randomized response, too.
		mechanism.law.attributes = (sizes) => sizes.map((size) => mixture(keep, [1n, BigInt(size)], singles).greatest)
		if (k <= MANY_COLUMNS)
			mechanism.law.columns = withColumns(k, k, (x, y) => (x === y ? levels.high : levels.low)).columns
		return mechanism
	},
	"hadamard-response": (p, k) => {
		const keep = integer(p.threshold),
			size = number(p.block_size, 2 ** 32, 2)
		if (size & (size - 1)) refuse("block_size", "be a power of two", size)
		const blocks = number(p.blocks, 2 ** 31, Math.ceil(k / (size - 1)))
		// Of one value half of the sets are empty, of two a quarter, of more none: row 3 is the sum of rows 1 and 2.
		const used = Math.floor(k / (size - 1)),
			left = k % (size - 1),
			outputs = BigInt(blocks) * BigInt(size)
		const nonempty = (values = 0) => BigInt(size - ([size, size / 2, size / 4][values] ?? 0))
		const empty = outputs - BigInt(used) * nonempty(size - 1) - nonempty(left)
		return part(
			mixture(keep, [1n, 2n * BigInt(blocks)], columns(size), empty, outputs),
			(x, draws) => {
				const forced = draws.bernoulli(keep, ONE)
				let column = draws.below(size),
					block = blocks > 1 ? draws.below(blocks) : 0
				if (forced && x < 0) return -1n
				if (forced) {
					const row = (x % (size - 1)) + 1
					block = Math.floor(x / (size - 1))
					const ones = ((row & column) >>> 0).toString(2).replaceAll("0", "")
					// Flipping the lowest bit of the row changes the sign.
					if (ones.length % 2) column = (column ^ (row & -row)) >>> 0
				}
				return BigInt(block) * BigInt(size) + BigInt(column)
			},
			k,
			outputs,
		)
	},
	"cyclic-design": (p, k) => {
		only(p, "epsilon design threshold")
		const keep = integer(p.threshold),
			design = readDesign(p.design),
			{ modulus, size, base } = design,
			outputs = BigInt(base.length * modulus)
		if (k > modulus) refuse("modulus", `be at least ${k}`, modulus)
		return part(
			mixture(keep, [BigInt(size), BigInt(modulus)], translates(design), emptyShifts(base, modulus, k), outputs),
			(x, draws) => {
				if (!draws.bernoulli(keep, ONE)) return BigInt(draws.below(outputs))
				if (x < 0) return -1n
				const choice = draws.below(base.length * size),
					block = Math.floor(choice / size)
				return BigInt(block * modulus + ((x + base[block][choice % size]) % modulus))
			},
			k,
			outputs,
		)
	},
	"subset-selection": (p, k) => {
		const keep = integer(p.threshold),
			planes = number(p.planes, 8, 1)
		const size = number(p.size, k - 1, 1),
			coin = integer(p.coin, 1n << BigInt(planes))
		return part(
			mixture(keep, [BigInt(size), BigInt(k)], subsets(size)),
			(x, draws) => {
				const forced = draws.bernoulli(keep, ONE),
					set = new Uint8Array(k)
				choose(draws, planes, [[set, () => coin, () => size, forced ? x : -1]])
				return forced && x < 0 ? -1n : asNumber(set)
			},
			k,
			0n,
			k,
			`${k} ${planes}`,
			size,
		)
	},
}

/** @template T @param {Record<string, T>} known @param {string} name */
function named(known, name, what = "mechanism") {
	if (Object.hasOwn(known, name)) return known[name]
	refuse(what, `be one of ${Object.keys(known)}`, name, "UnknownSpec")
}

/** @param {Part[]} parts @param {number[]} partOf @param {number[]} places in the part */
function parted(parts, partOf, places) {
	let body = 0,
		outputs = 0n
	const offsets = parts.map((part) => {
		body = Math.max(body, part.bits)
		outputs += part.outputs
		return outputs - part.outputs
	})
	const shapes = [...new Set(parts.map(({ shape }) => shape))],
		index = parts.every((part) => part.outputs)
	const revealed = indices(places.length).filter((x) => places[x] < 0)
	const join = (report = 0n, x = 0) => {
		const at = partOf[x],
			open = report < 0,
			position = revealed.indexOf(x)
		if (index) return open ? outputs + BigInt(position) : offsets[at] + report
		return (BigInt(open ? parts.length + position : at) << BigInt(body)) | (open ? 0n : report)
	}
	/** @type {Parted["split"]} */
	const split = (report) => {
		const head = index ? offsets.filter((offset) => offset <= report).length - 1 : Number(report >> BigInt(body))
		const x = revealed[index ? Number(report - outputs) : head - parts.length]
		if (x !== undefined) return [-1n, x]
		return [
			index ? report - offsets[head] : BigInt.asUintN(body, report),
			places.findIndex((place, x) => place >= 0 && partOf[x] === head),
		]
	}
	const sample = /** @type {Sample} */ ((x, draws) => join(parts[partOf[x]](places[x], draws), x))
	const law = lawOfParts(
		parts.map(({ levels }) => levels),
		partOf,
		places,
	)
	return Object.assign(sample, {
		law,
		parts,
		join,
		split,
		partOf: (x = 0) => partOf[x],
		layoutOf: (x = 0) => shapes.indexOf(parts[partOf[x]].shape),
	})
}

/**
 * Draws a position with the probability weight/2^62, by the alias method.
 * @param {bigint[]} weights
 * @param {Decisions} draws
 */
function drawn(weights, draws) {
	const bins = 2 ** bitsFor(BigInt(weights.length)),
		capacity = TOTAL / BigInt(bins)
	const left = [...weights, ...new Array(bins - weights.length).fill(0n)]
	const stay = left.map(() => capacity),
		alias = [...left.keys()]
	const small = alias.filter((b) => left[b] < capacity).reverse()
	const large = alias.filter((b) => left[b] > capacity).reverse()
	while (small.length && large.length) {
		const b = small.pop() ?? 0,
			j = large.at(-1) ?? 0
		stay[b] = left[b]
		alias[b] = j
		left[j] -= capacity - left[b]
		if (left[j] <= capacity) large.pop()
		if (left[j] < capacity) small.push(j)
	}
	const bin = draws.below(bins)
	return draws.bernoulli(stay[bin], capacity) ? bin : alias[bin]
}

/**
 * The greatest likelihoods of each attribute, whose values are averages of rows, summed over the outputs.
 * @param {bigint[][]} rows over 2^62
 * @param {number[]} sizes
 */
const attributesOf = (rows, sizes) =>
	sizes.map((size, axis) => {
		const sums = indices(rows[0].length).map(() => Array(size).fill(0n))
		rows.forEach((row, x) => {
			const value = digitsOf(sizes, x)[axis]
			row.forEach((weight, y) => (sums[y][value] += weight))
		})
		return /** @type {Fraction} */ ([
			sums.reduce((all, values) => all + largest(values), 0n),
			TOTAL * BigInt(rows.length / size),
		])
	})

/** Draws from a row of weights over 2^62. @type {Maker<Factor>} */
function table(p, k) {
	number(p.total_bits, 62, 62)
	const outputs = number(p.weights?.[0]?.length, 1e7, 1)
	const rows = each(p.weights, (row) => each(row, (weight) => integer(weight, TOTAL), outputs), k)
	const wrong = rows.find((row) => row.reduce((sum, weight) => sum + weight) !== TOTAL)
	if (wrong) refuse("weights", "sum to 2^62", `${wrong}`)
	const law = lawOfTable(rows)
	if (k * outputs <= MANY_WEIGHTS) law.attributes = (sizes) => attributesOf(rows, sizes)
	return Object.assign(
		withLaw(law, (x, draws) => BigInt(drawn(rows[x], draws))),
		{ outputs: BigInt(outputs) },
	)
}

const { "subset-selection": _, ...INDICES } = PARTS

/** Mechanisms of the factors of a product, and of single attributes. @type {Record<string, Maker<Factor>>} */
const FACTORS = { ...INDICES, table }

/** Coordinates of a value; the last one changes fastest. @param {number[]} sizes @returns {number[]} */
const digitsOf = (sizes, x = 0) =>
	sizes.reduceRight(([rest, ...digits], size) => [Math.floor(rest / size), rest % size, ...digits], [x]).slice(1)

/** Index of the chosen coordinates of a value. @param {number[]} sizes @param {number[]} axes */
const project = (sizes, axes, x = 0, digits = digitsOf(sizes, x)) =>
	axes.reduce((at, axis) => at * sizes[axis] + digits[axis], 0)

/**
 * The law of reports about some coordinates each. Ratios of reports that are sent together multiply.
 * @param {Component[]} components
 * @param {number[]} sizes
 * @param {(levels: number[]) => number} combined
 * @param {Fraction} greatest
 * @returns {Law}
 */
function lawOfComponents(components, sizes, combined, greatest) {
	if (sizes.reduce((a, b) => a * b, 1) > MANY_COLUMNS) {
		const widest = combined(
			components.map(({ size, law }) => {
				const { chosen } = representatives(size, law.classOf)
				return most(chosen.map((x) => most(chosen.map((other) => (x === other ? 0 : law.ratio(x, other))))))
			}),
		)
		return { greatest, classOf: () => 0, ratio: () => widest, components, combined }
	}
	return {
		greatest,
		components,
		combined,
		classOf: (x) => x,
		ratio: (x, other) =>
			combined(
				components.map(({ axes, law }) => {
					const [a, b] = [x, other].map((value) => project(sizes, axes, value))
					return a === b ? 0 : law.ratio(a, b)
				}),
			),
	}
}

/**
 * @param {any} p with kinds and the kind of each component
 * @param {Record<string, Maker<Factor>>} known
 * @returns {(Factor & { size: number })[]}
 */
function componentsOf(p, known, k = 0) {
	const kinds = each(p.kinds, ({ mechanism, size, parameters }) => {
		const n = number(size, Math.min(k, MANY_COLUMNS), 2)
		return Object.assign(named(known, mechanism, "a component")(parameters, n), { size: n })
	})
	return each(p.kind, (kind) => kinds[number(kind, kinds.length - 1)])
}

/** Draws one report per coordinate; the reports are the digits of one index. @type {Maker<Factor>} */
function product(p, k) {
	only(p, "kinds kind")
	const factors = componentsOf(p, FACTORS, k),
		sizes = factors.map(({ size }) => size)
	if (factors.length < 2 || sizes.reduce((a, b) => a * b, 1) !== k)
		refuse("factors", `be two or more, with sizes whose product is ${k}`, sizes)
	const greatest = factors.reduce(
		(
			[n, d],
			{
				law: {
					greatest: [m, e],
				},
			},
		) => reduced([n * m, d * e]),
		/** @type {Fraction} */ ([1n, 1n]),
	)
	return Object.assign(
		withLaw(
			lawOfComponents(
				factors.map(({ size, law }, i) => ({ axes: [i], size, law })),
				sizes,
				total,
				greatest,
			),
			(x, draws) =>
				digitsOf(sizes, x).reduce((report, digit, i) => report * factors[i].outputs + factors[i](digit, draws), 0n),
		),
		{ outputs: factors.reduce((all, { outputs }) => all * outputs, 1n) },
	)
}

/** Draws a part of the value, then a report about it. @type {Maker} */
function sampledParts(p, _, sizes = []) {
	only(p, "parts weights kinds kind")
	const parts = componentsOf(p, { ...FACTORS, product }, MANY_COLUMNS),
		weights = each(p.weights, (weight) => number(weight, 2 ** 16, 1), parts.length)
	const axes = each(p.parts, (list) => each(list, (axis) => number(axis, sizes.length - 1)), parts.length),
		all = total(weights)
	parts.forEach(({ size }, i) => {
		const product = axes[i].reduce((a, axis) => a * sizes[axis], 1),
			ascending = axes[i].every((axis, n) => n === 0 || axis > axes[i][n - 1])
		if (size !== product || !ascending)
			refuse("a part", "have attributes in order, whose sizes multiply to its size", axes[i])
	})
	if (all > 2 ** 16) refuse("weights", "have a sum of at most 2^16", all)
	const greatest = greatestOf(
		parts.map(({ law }) => law),
		weights.map(BigInt),
		BigInt(all),
	)
	return withLaw(
		lawOfComponents(
			parts.map(({ size, law }, i) => ({ axes: axes[i], size, law })),
			sizes,
			most,
			greatest,
		),
		(x, draws) => {
			let place = draws.below(all),
				chosen = 0,
				first = 0n,
				report = 0n
			for (; place >= weights[chosen]; chosen++) place -= weights[chosen]
			// The mechanisms before the chosen one read their bits of the frame, too.
			for (let i = 0; i <= chosen; i++) {
				report = first + parts[i](project(sizes, axes[i], x), draws)
				first += parts[i].outputs
			}
			return report
		},
	)
}

/** Weights over 2^62 of geometric noise, by its distance from 0; the last one is that of a whole tail. */
export function noiseOf(ratio = 0n, last = 0) {
	const from = (center = 0n) => {
		const weights = [center]
		let left = TOTAL - center
		for (let d = 1; d <= last; d++) {
			// For a ratio of 1, the tail of any weight is too heavy.
			const by = d < last ? ONE : ONE - ratio || 1n
			left -= 2n * (weights[d] = (weights[d - 1] * ratio + by - 1n) / by)
		}
		weights[last] += left / 2n
		return left < 0n ? undefined : weights
	}
	let weights = from() ?? []
	for (let bit = TOTAL; bit > 1n; bit /= 2n) weights = from(weights[0] + bit) ?? weights
	return weights
}

/** Hides values within parts, and reveals unprotected ones unless a draw hides them. @type {Maker<Parted>} */
function parts(p, k) {
	const { block, blocks } = blocksOf(p.part_of, k),
		open = ascending(p.unprotected, k),
		sizes = Array(blocks).fill(0)
	const places = block.map((j, x) => (open.has(x) ? -1 : sizes[j]++))
	const kinds = each(p.kinds, ({ mechanism, size, parameters }) =>
		named(PARTS, mechanism)(parameters, number(size, k, 1)),
	)
	return parted(
		each(
			p.kind,
			(kind, j) => {
				number(p.kinds[number(kind, kinds.length - 1)].size, sizes[j], sizes[j])
				return kinds[kind]
			},
			blocks,
		),
		block,
		places,
	)
}

/** Draws a hash function, then the bucket of the value or another one. @type {Maker<Part>} */
function localHashing(p, k) {
	only(p, "epsilon buckets threshold")
	const keep = integer(p.threshold),
		g = number(p.buckets, 2 ** 15, 2),
		m = indices(32).find((m) => g ** m >= k) ?? 32,
		hashes = number(g ** m, 2 ** 31)
	for (let divisor = 2; divisor ** 2 <= g; divisor++) if (g % divisor === 0) refuse("buckets", "be a prime number", g)
	const bucket = (a = 0, x = 0) => {
		let sum = 0
		for (; a && x; a = Math.floor(a / g), x = Math.floor(x / g)) sum += (a % g) * (x % g)
		return sum % g
	}
	// Bounds if there are many sets.
	const few = k * hashes <= MANY_OUTPUTS
	const rows = (/** @type {ArrayLike<number>} */ weights) =>
		indices(few ? hashes : 0).map((a) => {
			const row = new Float64Array(g)
			for (let x = 0; x < k; x++) row[bucket(a, x)] += weights[x]
			return row
		})
	const sizes = rows(new Uint8Array(k).fill(1)),
		empty = total(sizes.map((row) => row.filter((size) => !size).length))
	/** @type {TwoLevels["extremes"]} */
	const extremes = (weights, more) =>
		few
			? extremesOf(
					rows(weights).map((row, a) => [row, sizes[a]]),
					k,
					more,
				)
			: [0, total(weights)]
	const draw = (a = 0, x = 0, /** @type {Decisions} */ draws) =>
		BigInt(a) * BigInt(g) + BigInt(draws.bernoulli(keep, ONE) ? bucket(a, x) : draws.below(g))
	const outputs = BigInt(hashes) * BigInt(g),
		hashOf = (earlier = 0n) => Number(earlier / BigInt(g))
	return Object.assign(
		part(
			mixture(keep, [1n, BigInt(g)], extremes, BigInt(empty), outputs),
			(x, draws) => draw(draws.below(hashes), x, draws),
			k,
			outputs,
		),
		{
			answers: Math.min(g, k),
			keyOf: (x = 0, earlier = 0n) => bucket(hashOf(earlier), x),
			again: (x = 0, /** @type {Decisions} */ draws, earlier = 0n) => draw(hashOf(earlier), x, draws),
		},
	)
}

/** Mechanisms that can be memoized. @type {Record<string, Maker<Part | Parted>>} */
const MEMORIES = {
	...PARTS,
	"local-hashing": localHashing,
	parts,
}

/** The parameters of reports that do not depend on the value within its part. @param {any} p */
const blankOf = ({ kinds, ...p }) =>
	kinds
		? {
				...p,
				kinds: kinds.map((/** @type {any} */ kind) => ({ ...kind, parameters: { ...kind.parameters, threshold: 0 } })),
			}
		: { ...p, threshold: 0 }

/**
 * What the mechanisms of one report and of permanent answers share: everything but levels, and sizes of sets.
 * @param {any} p
 * @returns {any}
 */
const setsOf = ({ epsilon, threshold, size, coin, planes, kinds, kind, ...p }) => [
	p,
	kind?.map((/** @type {number} */ i) => [kinds[i].size, setsOf(kinds[i].parameters)]),
]

/**
 * Tables: a row of one report is the permanent row with probability n/d, and otherwise a row that all values share.
 * @param {any} p
 */
function memoizedTables(p, k = 0) {
	const [single, permanent] = [p.single, p.permanent].map((parameters) => table(parameters, k))
	if (p.response) return memoizedResponse(p, single, permanent, k)
	const [[n, d]] = each(p.keep, (odds) => each(odds, (part) => integer(part, 2n ** 22n), 2), 1)
	const [ones, answers] = [p.single, p.permanent].map(({ weights }) =>
		weights.map((/** @type {any[]} */ row) => row.map(BigInt)),
	)
	const shared =
		n < d ? ones[0].map((/** @type {bigint} */ one, y = 0) => (d * one - n * answers[0][y]) / (d - n)) : answers[0]
	const blank = table({ total_bits: 62, weights: [shared.map(String)] }, 1)
	const mixed =
		n <= d &&
		ones.every((/** @type {bigint[]} */ row, x = 0) =>
			row.every((one, y) => d * one === n * answers[x][y] + (d - n) * shared[y]),
		)
	if (!mixed || single.outputs !== permanent.outputs)
		refuse("the table of one report", "be the permanent table mixed with a row that all values share", p.keep)
	return {
		single,
		permanent,
		report: (answer = 0n, /** @type {Decisions} */ draws) =>
			n === d || (n && draws.bernoulli(n, d)) ? answer : blank(0, draws),
	}
}

/**
 * Tables with a third one, which draws a report from the row of the permanent answer.
 * @param {any} p
 * @param {Factor} single
 * @param {Factor} permanent
 */
function memoizedResponse(p, single, permanent, k = 0) {
	const middle = Number(permanent.outputs),
		response = table(p.response, middle)
	const [ones, answers, reports] = [p.single, p.permanent, p.response].map(({ weights }) =>
		weights.map((/** @type {any[]} */ row) => row.map(BigInt)),
	)
	const exact = indices(k).every((x) =>
		indices(Number(single.outputs)).every(
			(y) =>
				ones[x][y] * TOTAL ===
				reports.reduce(
					(/** @type {bigint} */ sum, /** @type {bigint[]} */ row, z = 0) => sum + answers[x][z] * row[y],
					0n,
				),
		),
	)
	if (!exact || response.outputs !== single.outputs || p.keep.length)
		refuse("the table of one report", "be the product of the permanent table and the response", p.keep)
	return { single, permanent, report: (answer = 0n, /** @type {Decisions} */ draws) => response(Number(answer), draws) }
}

/** Draws a permanent answer, then a report about it. @type {Maker<Sample & { law: Law, memory: Memory }>} */
function memoized(p, k) {
	only(
		p,
		`mechanism single permanent keep lifetime max_changes refresh_every${p.mechanism === "table" ? " response" : ""}`,
	)
	const limit = p.max_changes === null ? Infinity : number(p.max_changes, 2 ** 31, 0) + 1,
		every = p.refresh_every && number(p.refresh_every, 2 ** 31, 1)
	const { single, permanent, report } = p.mechanism === "table" ? memoizedTables(p, k) : memoizedSets(p, k)
	const { answers = k, keyOf = (x = 0) => x, again = permanent } = /** @type {Part} */ (permanent)
	return Object.assign(
		withLaw(single.law, (x, draws) => report(permanent(x, draws), draws)),
		{
			memory: {
				law: permanent.law,
				lifetime: p.lifetime,
				report,
				every,
				keyOf,
				most: every ? limit : Math.min(limit, answers),
				draw: (x = 0, /** @type {Decisions} */ draws, /** @type {bigint | undefined} */ earlier) =>
					(earlier === undefined ? permanent : again)(x, draws, earlier),
			},
		},
	)
}

/**
 * Mechanisms of sets: one report has the law of the single mechanism if ρ is the quotient of the thresholds.
 * @param {any} p
 */
function memoizedSets(p, k = 0) {
	const make = named(MEMORIES, p.mechanism),
		all = [p.single, p.permanent, blankOf(p.single)].map((parameters) => make(parameters, k))
	const [single, permanent, blank] = all.map((one) =>
		"split" in one
			? one
			: Object.assign(
					one,
					/** @type {Omit<Parted, "law">} */ ({
						parts: [one],
						partOf: () => 0,
						split: (report) => [report, 0],
						join: (report) => report,
					}),
				),
	)
	if (JSON.stringify(setsOf(p.single)) !== JSON.stringify(setsOf(p.permanent)))
		refuse("the permanent mechanism", "have the sets of the mechanism of one report", p.permanent)
	const keep = each(
		p.keep,
		(odds, i) => {
			const [n, d] = each(odds, (part) => integer(part), 2),
				[one, all] = [single.parts[i], permanent.parts[i]]
			const [from, to] = all.levels.keep ? [one.levels.keep, all.levels.keep] : [1n, 1n]
			const grows = all.size <= one.size && (all.outputs || !one.outputs)
			return from === n && to === d && n <= d && one.levels.keep <= all.levels.keep && grows
				? [n, d]
				: refuse("keep", "be the quotients of the thresholds, for permanent sets that are not larger", odds)
		},
		single.parts.length,
	)
	return {
		single,
		permanent,
		report: (answer = 0n, /** @type {Decisions} */ draws) => {
			const [inner, x] = permanent.split(answer),
				at = permanent.partOf(x),
				[n, d] = keep[at],
				{ size, bits } = single.parts[at]
			if (n !== d && !(n && draws.bernoulli(n, d))) return blank(x, draws)
			// A permanent set that is smaller than that of a report grows by random members.
			let set = permanent.parts[at].outputs && !single.parts[at].outputs && inner >= 0n ? 1n << inner : inner
			for (let left = inner < 0n ? 0 : size - permanent.parts[at].size; left > 0; left--) {
				const absent = indices(bits).filter((i) => !((set >> BigInt(i)) & 1n))
				set |= 1n << BigInt(absent[draws.below(absent.length)])
			}
			return single.join(set, x)
		},
	}
}

/** @type {Record<string, Maker>} */
const MECHANISMS = {
	...PARTS,
	table,
	product,
	"sampled-parts": sampledParts,
	"local-hashing": localHashing,
	memoized,
	"high-low-mixed-subsets": (p, k) => {
		const hidden = ascending(p.sensitive, k),
			places = indices(k).map((x) => hidden.get(x) ?? -1),
			s = hidden.size
		const { planes, keep, coins } = lanesOf(p, 2),
			weight = integer(p.weight),
			weights = [ONE - weight, weight]
		const sizes = each(p.sizes, (size, i) => number(size, s - 1 + i, i ? p.sizes[0] + 1 : 1), 2)
		// A set of all sensitive values is a single output.
		const parts = sizes.map((size, i) =>
			size < s
				? PARTS["subset-selection"]({ threshold: `${keep[i]}`, size, coin: `${coins[i]}`, planes }, s)
				: PARTS["randomized-response"]({ threshold: `${keep[i]}` }, 1),
		)
		const levels = parts.map((part) => part.levels),
			open = weights[0] * keep[0] + weights[1] * keep[1]
		const isRevealed = (x = 0) => places[x] < 0 && open > 0n
		return withLaw(
			{
				greatest: sum([greatestOf(levels, weights), [BigInt(k - s) * open, ONE * ONE]]),
				classOf: (x) => +(places[x] < 0),
				ratio: (x) => (isRevealed(x) ? Infinity : most(levels.map(levelOf))),
			},
			(x, draws) => {
				const at = +draws.bernoulli(weight, ONE),
					report = parts[at](sizes[at] < s ? places[x] : Math.min(places[x], 0), draws)
				if (report >= 0) return (BigInt(at) << BigInt(s)) | report
				return BigInt(2 + places.slice(0, x).filter((place) => place < 0).length) << BigInt(s)
			},
		)
	},
	"unary-encoding": (p, k) => {
		const own = integer(p.own),
			other = integer(p.other)
		return withLaw(lawOfBits(own, other, k), (x, draws) =>
			asNumber(Uint8Array.from(indices(k), (i) => +draws.bernoulli(i === x ? own : other, ONE))),
		)
	},
	parts,
	"composed-subsets": (p, k) => {
		const { block, blocks, members } = blocksOf(p.blocks, k),
			{ planes, keep, coins } = lanesOf(p, 2)
		const sizes = each(p.sizes, (size, i) => number(size, (i ? blocks : k) - 1, 1), 2)
		const parts = keep.map((odds, i) => mixture(odds, [BigInt(sizes[i]), BigInt(i ? blocks : k)], subsets(sizes[i])))
		return withLaw(lawOfBoth(parts, sizes, block, members), (x, draws) => {
			const forced = keep.map((odds) => draws.bernoulli(odds, ONE)),
				all = new Uint8Array(k + blocks)
			choose(
				draws,
				planes,
				[x, block[x]].map((element, i) => [
					all.subarray(i * k, k + i * blocks),
					() => coins[i],
					() => sizes[i],
					forced[i] ? element : -1,
				]),
			)
			return asNumber(all)
		})
	},
	"nested-cyclic": (p, k) => {
		only(p, "blocks epsilon across high sizes patterns seed thresholds")
		const { block, places, members, blocks } = blocksOf(p.blocks, k),
			size = most(members.map(({ length }) => length))
		const keep = each(p.thresholds, (odds) => integer(odds), 3),
			high = number(p.high, blocks - 1, 1),
			seed = integer(p.seed, 2n ** 32n - 1n)
		const sizes = each(p.sizes, (n, i) => number(n, size - 1, 1 - i), 2),
			count = number(p.patterns, Math.floor(MANY_OUTPUTS / (blocks * size)), 1)
		const highOf = (pattern = 0) => leastKeys(seed, pattern * blocks, blocks, high)
		const setOf = (pattern = 0, j = 0, low = 0) =>
			leastKeys(seed, count * blocks + (pattern * blocks + j) * size, size, sizes[low])
		const statusOf = /** @type {(pattern: number, j: number) => [number, number[]]} */ (
			(pattern, j) => {
				const low = +!highOf(pattern).includes(j)
				return [low, setOf(pattern, j, low)]
			}
		)
		const levels = levelsOf(keep, high, sizes, size, blocks)
		return withLaw(lawOfPatterns(levels, high, block, places, blocks, size, count, statusOf), (x, draws) => {
			const low = +!draws.bernoulli(keep[0], ONE),
				forced = draws.bernoulli(keep[1 + low], ONE)
			const rows = low ? blocks - high : high,
				choices = forced ? sizes[low] : size
			const index = draws.below(count * rows * choices),
				row = Math.floor(index / choices),
				pattern = Math.floor(row / rows)
			const raised = highOf(pattern),
				j = indices(blocks).filter((j) => +!raised.includes(j) === low)[row % rows]
			const shift = forced ? places[x] - setOf(pattern, j, low)[index % choices] + size : index
			return BigInt((pattern * blocks + ((block[x] - j + blocks) % blocks)) * size + (shift % size))
		})
	},
	"shifted-waves": (p, k) => {
		only(p, "epsilon modulus waves thresholds")
		const v = number(p.modulus, 2 ** 17, k),
			rows = each(p.waves, (row) => each(row, (n, i) => number(n, i < 3 ? v : 4096, i < 2 ? i * row[0] : 1), 4))
		const table = rows.flatMap((row, i) => Array(row[3]).fill(i)),
			m = table.length
		if (m > 4096 || m & (m - 1)) refuse("weights", "sum to a power of two", m)
		const parts = each(
			p.thresholds,
			(odds, i) => {
				const [a, b, d] = rows[i],
					set = indices(v).filter((x) => (2 * a * v * x + (b - a) * x * x) % (2 * v * v) < 2 * v * d)
				return {
					set,
					...mixture(
						integer(odds),
						[BigInt(number(set.length, v - 1, 1)), BigInt(v)],
						singles,
						emptyShifts([set], v, k),
						BigInt(v),
					),
				}
			},
			rows.length,
		)
		const greatest = greatestOf(
			parts,
			rows.map((row) => BigInt(row[3])),
			BigInt(m),
		)
		return withLaw({ greatest, classOf: () => 0, ratio: () => most(parts.map(levelOf)) }, (x, draws) => {
			const wave = table[draws.below(m)],
				{ keep, set } = parts[wave]
			return BigInt(
				wave * v + ((draws.bernoulli(keep, ONE) ? x - set[draws.below(set.length)] + v : draws.below(v)) % v),
			)
		})
	},
	"one-bit": (p, k) => {
		only(p, "epsilon positions step")
		const stated = p.positions && each(p.positions, (c) => integer(c, 2n ** 40n), k),
			top = stated ? largest(stated) : BigInt(k - 1)
		if (!top || stated?.every(Boolean)) refuse("positions", "include 0 and other integers", p.positions)
		const step = integer(p.step, (ONE - 2n) / top),
			base = (ONE - step * top) / 2n
		const ones = (x = 0) => base + step * (stated?.[x] ?? BigInt(x)),
			odds = (x = 0, y = 0) => (y ? ones(x) : ONE - ones(x))
		return withLaw(lawOfMany([ONE + step * top, ONE], k, 2, odds, ln(ONE - base, base)), (x, draws) =>
			BigInt(draws.bernoulli(ones(x), ONE)),
		)
	},
	"shifted-bins": (p, k) => {
		only(p, "epsilon width share thresholds")
		const m = number(p.width, k - 1, 2),
			first = (k - 1) % m,
			share = integer(p.share, first ? ONE : 0n),
			weights = [share, ONE - share]
		// The first offsets have one bin more than the others.
		const bins = [1, 0].map((more) => Math.ceil(k / m) + more)
		const parts = each(p.thresholds, (odds, i) => mixture(integer(odds), [1n, BigInt(bins[i])], singles), 2)
		const widest = most(parts.filter((_, i) => weights[i]).map(levelOf))
		return withLaw(
			lawOfMany(
				greatestOf(parts, weights),
				k,
				k + m - 1,
				(x, y) => {
					const i = +(y % m >= first),
						{ high, low } = parts[i]
					return !weights[i] ? 0n : x <= y && x > y - m ? high : low
				},
				widest,
			),
			(x, draws) => {
				const i = +!draws.bernoulli(share, ONE),
					offset = i ? first + draws.below(m - first) : draws.below(first)
				const forced = draws.bernoulli(parts[i].keep, ONE),
					other = draws.below(bins[i])
				return BigInt(offset + m * (forced ? Math.floor((x + m - 1 - offset) / m) : other))
			},
		)
	},
	"truncated-geometric": (p, k) => {
		only(p, "epsilon ratio")
		const last = number(k, 2 ** 16, 2) - 1,
			ratio = integer(p.ratio),
			level = ln(ONE, ratio),
			weights = noiseOf(ratio, last),
			tails = [...weights]
		for (let d = last; d > 0; d--) tails[d - 1] += tails[d]
		const noise = [...weights.slice(1).reverse(), ...weights],
			widest = Math.max(ln(tails[0], tails[last]), ln(weights[0], weights[last - 1]))
		return withLaw(
			lawOfMany(
				[2n * tails[0] + BigInt(k - 2) * weights[0], TOTAL],
				k,
				k,
				(x, y) => (y % last ? weights : tails)[Math.abs(y - x)],
				// The likelihoods of neighbours differ by at most 1/ratio.
				widest,
				(x, other) => Math.min(Math.abs(x - other) * level, widest),
			),
			(x, draws) => BigInt(Math.min(Math.max(x + drawn(noise, draws) - last, 0), last)),
		)
	},
}

/** Reads a number of a document: an integer, or another number as a string. @param {any} value @returns {Fraction} */
function exact(value) {
	const [, digits, places = "", by = "1"] =
		/^(-?\d+)(?:\.(\d+))?(?:\/(\d+))?$/.exec(value) ?? refuse("a bound", "be a number", value)
	return [BigInt(digits + places), BigInt(by) * 10n ** BigInt(places.length)]
}

/** The edges of bins. @param {any} document @returns {Fraction[]} */
function edgesOf({ low, high, bins, edges }) {
	if (edges) return each(edges, exact)
	const [a, b] = exact(low),
		[c, d] = exact(high),
		n = number(bins, 2 ** 20, 1)
	return indices(n + 1).map((i) => [a * d * BigInt(n - i) + c * b * BigInt(i), b * d * BigInt(n)])
}

/** The double nearest to a fraction; a remainder counts as one more bit. @param {Fraction} fraction */
function nearest([n, d]) {
	const scaled = (n < 0n ? -n : n) << 256n
	return ((n < 0n ? -1 : 1) * Number((scaled / d) | (scaled % d ? 1n : 0n))) / 2 ** 256
}

/** A number in plain digits: a decimal if it has finitely many places, else a fraction. @param {Fraction} fraction */
function plain([n, d]) {
	const sign = n < 0n ? "-" : "",
		[top, bottom] = reduced([n < 0n ? -n : n, d]),
		base = 10n ** BigInt(bottom.toString(2).length)
	if (base % bottom) return `${sign}${top}/${bottom}`
	const places = `${(top % bottom) * (base / bottom)}`.padStart(`${base}`.length - 1, "0").replace(/0+$/, "")
	return `${sign}${top / bottom}${places && "." + places}`
}

/** Reads bins of numbers; values are numbers or labels of bins. @param {any} document @returns {Domain} */
function readBins(document) {
	const edges = edgesOf(document),
		right = document.closed === "right",
		last = edges.length - 2
	const names = edges.map(plain),
		bounds = edges.map(nearest),
		inner = bounds.slice(1, -1)
	const labels = indices(last + 1).map(
		(i) => `${right && i ? "(" : "["}${names[i]}, ${names[i + 1]}${right || i === last ? "]" : ")"}`,
	)
	const refuses = document.out_of_range === "refuse"
	return {
		size: labels.length,
		place(value) {
			if (typeof value !== "number") return labels.indexOf(value)
			if (Number.isNaN(value) || (refuses && !(value >= bounds[0] && value <= bounds[last + 1]))) return -1
			return inner.filter((edge) => (right ? edge < value : edge <= value)).length
		},
	}
}

/** Reads a domain. @param {any} document @returns {Domain} */
function readDomain(document) {
	const { values, low, high, bins, edges, out_of_range, missing, grid, product, order } = document ?? {}
	if (missing !== undefined) {
		// A list ends with the label of missing values; other documents do not contain it.
		const { size, place } = readDomain({
			...document,
			missing: undefined,
			...(values && { values: each(values, (x) => x).slice(0, -1) }),
		})
		const isMissing = (/** @type {any} */ value) => value === null || value === missing || Number.isNaN(value)
		return { size: size + 1, place: (value) => (place(value) < 0 && isMissing(value) ? size : place(value)) }
	}
	if (edges || bins) return readBins(document)
	if (low !== undefined) {
		const first = number(low, 2 ** 53, -(2 ** 53)),
			size = number(high - first, 2 ** 31, 1)
		return {
			size,
			place(value) {
				const at = Math.min(Math.max(value, first), first + size - 1)
				return typeof value === "number" && Number.isInteger(at) && (at === value || out_of_range !== "refuse")
					? at - first
					: -1
			},
		}
	}
	if (document?.size) {
		const size = number(document.size, 2 ** 31, 1)
		return { size, place: (value) => (Number.isInteger(value) && value >= 0 && value < size ? value : -1) }
	}
	if (values) {
		const places = new Map(each(values, (label, i) => [JSON.stringify(label), i]))
		return { size: values.length, place: (value) => places.get(JSON.stringify(value)) ?? -1 }
	}
	if (!grid && !product) refuse("domain", "have values, a size, bounds, a grid or a product", document, "UnknownSpec")
	const names = grid ? ["row", "column"] : order
	const factors = each(names, (name) => readDomain(grid ? { size: grid[`${name}s`] } : product[name]))
	return {
		names,
		sizes: factors.map((factor) => factor.size),
		size: factors.reduce((all, factor) => all * factor.size, 1),
		place: (value) =>
			factors.reduce((at, factor, i) => {
				const place = factor.place(value?.[Array.isArray(value) ? i : names[i]])
				return at < 0 || place < 0 ? -1 : at * factor.size + place
			}, 0),
	}
}

// Marks strings s and numbers n, to keep their spelling: Python writes 1.0 and 1e+16, JavaScript does not.
const marked = (json = "") =>
	JSON.parse(
		json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token = "") =>
			token[0] === '"' ? `"s${token.slice(1)}` : `"n${token}"`,
		),
	)

const hex = (bytes = new Uint8Array()) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

/** The canonical JSON, which is hashed. @param {any} document marked @returns {string} */
function canonical(document) {
	if (typeof document === "string") return document[0] === "n" ? document.slice(1) : JSON.stringify(document.slice(1))
	if (Array.isArray(document)) return `[${document.map(canonical)}]`
	if (!document || document === true) return String(document)
	return `{${Object.keys(document)
		.sort()
		.map((key) => `${canonical(key)}:${canonical(document[key])}`)}}`
}

/** The SHA-256 hash of a string, as hex digits. */
const digest = async (text = "") => {
	const bytes = new TextEncoder().encode(text)
	return hex(crypto.subtle ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) : sha256(bytes))
}

/** SHA-256 (FIPS 180-4) for pages over plain HTTP, where browsers lack `crypto.subtle`. @param {Uint8Array} bytes */
function sha256(bytes) {
	const primes = indices(312).filter((n) => n > 1 && indices(n).every((d) => d < 2 || n % d)),
		bits = (/** @type {number} */ root) => Math.floor((root % 1) * 2 ** 32) | 0
	const keys = primes.map((p) => bits(Math.cbrt(p))),
		state = Int32Array.from(primes.slice(0, 8), (p) => bits(Math.sqrt(p)))
	const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6),
		view = new DataView(padded.buffer),
		w = new Int32Array(64)
	padded.set(bytes)
	padded[bytes.length] = 128
	view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n)
	const turn = (/** @type {number} */ x, /** @type {number[]} */ [a, b, c]) =>
		((x >>> a) | (x << (32 - a))) ^
		((x >>> b) | (x << (32 - b))) ^
		(c > 32 ? x >>> (c - 32) : (x >>> c) | (x << (32 - c)))
	for (let start = 0; start < padded.length; start += 64) {
		let [a, b, c, d, e, f, g, h] = state
		for (let i = 0; i < 64; i++) {
			// Shifts, in contrast to rotations, are written as 32 more.
			w[i] =
				i < 16
					? view.getInt32(start + 4 * i)
					: turn(w[i - 2], [17, 19, 42]) + w[i - 7] + turn(w[i - 15], [7, 18, 35]) + w[i - 16]
			const first = (h + turn(e, [6, 11, 25]) + ((e & f) ^ (~e & g)) + keys[i] + w[i]) | 0,
				second = turn(a, [2, 13, 22]) + ((a & b) ^ (a & c) ^ (b & c))
			;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
		}
		;[a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value))
	}
	state.forEach((value, i) => view.setInt32(4 * i, value))
	return padded.subarray(0, 32)
}

/** Reads a mechanism from its spec. @param {any} spec @returns {Mechanism} */
export function readMechanism(spec) {
	const make = named(MECHANISMS, spec.mechanism),
		layouts = [spec.layout].flat()
	if (spec.version !== 1) refuse(`the version of ${spec.mechanism}`, "be 1", spec.version, "UnknownSpec")
	layouts.forEach(checkLayout)
	const domain = readDomain(spec.domain),
		sample = make(spec.parameters, domain.size, domain.sizes)
	return {
		...spec.report,
		bits: number(spec.report.bits, MANY_BITS),
		domain,
		sample,
		law: sample.law,
		memory: sample.memory,
		layoutOf: (x) => layouts[sample.layoutOf?.(x) ?? 0],
	}
}

// -- what reports reveal, and whether a mechanism obeys a policy --

/** Reads an epsilon: "1", "-1/2", "0.25", "ln 3", "3/2*ln 5/2", "1+ln 2", "inf". @param {any} value */
export function readLevel(value) {
	if (value === "inf") return Infinity
	const terms = String(value)
		.split("+")
		.map((term) => {
			const [, sign, n, d, of, by] =
				/^(-?)(?=.)(?:(\d+(?:\.\d+)?)(?:\/(\d+))?)?(?:\*?ln (\d+)(?:\/(\d+))?)?$/.exec(term) ??
				refuse("a level", "be a number", value)
			return (
				(((sign ? -1 : 1) * Number(n ?? 1)) / Number(d ?? 1)) *
				(of ? Math.log(Number(of)) - Math.log(Number(by ?? 1)) : 1)
			)
		})
	const level = total(terms)
	return Number.isNaN(level) ? refuse("a level", "be a number", value) : level
}

/** Two values of each class represent all pairs. @param {((x: number) => any)[]} classes */
function representatives(size = 0, ...classes) {
	const seen = new Map(),
		of = (x = 0) => classes.map((classOf) => classOf(x)).join()
	const chosen = indices(size).filter((x) => seen.set(of(x), (seen.get(of(x)) ?? 0) + 1).get(of(x)) <= 2)
	return { chosen, of }
}

/** Maps a value to its component in one factor. @param {Domain} domain @param {string} name */
function factorOf({ names = [], sizes = [] }, name) {
	const at = names.indexOf(name),
		after = sizes.slice(at + 1).reduce((a, b) => a * b, 1)
	if (at < 0) refuse("secret", `be one of ${names}`, name)
	return (x = 0) => Math.floor(x / after) % sizes[at]
}

/** Coordinates of all values: numbers, or midpoints of bins. @param {any} domain document @returns {any[][]} */
function pointsOf(domain) {
	const { values, size, low, high, bins, edges, grid, product, order } = domain
	if (edges || bins) {
		const ends = edgesOf(domain).map(nearest)
		return ends.slice(1).map((end, i) => [(ends[i] + end) / 2])
	}
	if (low !== undefined) return indices(high - low).map((x) => [low + x])
	if (values) return values.map((/** @type {any} */ value) => [value].flat())
	if (size) return indices(size).map((x) => [x])
	return (
		grid ? [{ size: grid.rows }, { size: grid.columns }] : order.map((/** @type {string} */ name) => product[name])
	).reduce(
		(/** @type {any[][]} */ all, /** @type {any} */ factor) =>
			all.flatMap((point) => pointsOf(factor).map((more) => [...point, ...more])),
		[[]],
	)
}

/** The square root, rounded down to millionths. */
function rootOf(whole = 0) {
	const scaled = BigInt(whole) * 10n ** 12n
	let root = BigInt(Math.floor(Math.sqrt(whole) * 1e6))
	while (root * root > scaled) root--
	while ((root + 1n) ** 2n <= scaled) root++
	return Number(root) / 1e6
}

/** @param {any} distance @param {any} domain document @returns {(x: number, other: number) => number} */
function distanceOf(distance, domain) {
	if (Array.isArray(distance)) return (x, other) => readLevel(distance[x][other])
	if (distance === "discrete") return () => 1
	if (["absolute", "manhattan", "euclidean"].includes(distance) && !domain.grid?.latitude) {
		const points = pointsOf(domain),
			whole = points.flat().every(Number.isSafeInteger),
			steps = (x = 0, other = 0) => points[x].map((at, i) => Math.abs(at - points[other][i]))
		if (distance !== "euclidean") return (x, other) => total(steps(x, other))
		if (whole) return (x, other) => rootOf(total(steps(x, other).map((step) => step * step)))
	}
	if (distance !== "km" || !domain.grid?.latitude)
		refuse(
			"distance",
			"be discrete, a matrix, km on a map, absolute or manhattan between numbers, or euclidean between integers",
			distance,
			"UnknownSpec",
		)
	const { rows, columns: across, latitude, longitude } = domain.grid
	const centre = ([low = 0, high = 0], i = 0, n = 1) => ((low + ((high - low) * (2 * i + 1)) / (2 * n)) * Math.PI) / 180
	return (x, other) => {
		const [[a, b], [c, d]] = [x, other].map((cell) => [
			centre(latitude, Math.floor(cell / across), rows),
			centre(longitude, cell % across, across),
		])
		const half = Math.sin((a - c) / 2) ** 2 + Math.cos(a) * Math.cos(c) * Math.sin((b - d) / 2) ** 2
		// Whole metres, as in the policy; the addend absorbs rounding errors of sines.
		return Math.floor(2 * 6371008.8 * Math.asin(Math.sqrt(Math.min(1, half))) + 1e-6) / 1000
	}
}

/** Levels of pairs from those of their values. @type {Record<string, (a: number, b: number) => number>} */
const RULES = { min: Math.min, max: Math.max, mean: (a, b) => (a + b) / 2 }

/**
 * The limits of a policy on pairs; undefined for a prior policy.
 * @param {any} document
 * @param {Domain} domain
 * @returns {Limits | undefined}
 */
function limitsOf({ domain: document, policy: p }, domain) {
	if (p.kind === "pairwise") return { classOf: (x) => x, limit: (x, other) => readLevel(p.matrix[x][other]) }
	if (p.kind === "blocks") {
		const epsilon = [p.epsilon].flat().map(readLevel),
			across = readLevel(p.across ?? "inf")
		// Blocks are numbered in the order of their first values.
		const numbers = new Map(),
			block = each(p.blocks, (label) => numbers.get(label) ?? numbers.set(label, numbers.size).size - 1, domain.size)
		return {
			classOf: (x) => block[x],
			limit: (x, other) =>
				block[x] !== block[other] ? across : epsilon.length > 1 ? (epsilon[block[x]] ?? 0) : epsilon[0],
		}
	}
	if (p.kind === "product") {
		const { names = [], sizes = [] } = domain,
			parts = each(names, (name) => limitsOf(attribute(document, p, name), readDomain(document.product[name])))
		const limits = parts.map((part, i) =>
			part ? part.limit : refuse("attributes", "have policies on pairs", names[i]),
		)
		/** @type {Limits["of"]} */
		const of = (axes, [x, other]) =>
			total(axes.map((axis, i) => (x[i] === other[i] ? 0 : limits[axis](x[i], other[i]))))
		if (domain.size <= MANY_COLUMNS)
			return {
				of,
				classOf: (x) => x,
				limit: (x, other) => of(indices(sizes.length), [digitsOf(sizes, x), digitsOf(sizes, other)]),
			}
		// Of many values, the closest two represent all.
		const closest = least(
			limits.map((limit, i) =>
				least(indices(sizes[i]).map((x) => least(indices(sizes[i]).map((y) => (x === y ? Infinity : limit(x, y)))))),
			),
		)
		return { of, classOf: () => 0, limit: () => closest }
	}
	if (p.kind === "per-value") {
		const levels = each(p.epsilons, readLevel, domain.size),
			rule = named(RULES, p.rule ?? "min", "the rule")
		return { classOf: (x) => levels[x], limit: (x, other) => rule(levels[x], levels[other]) }
	}
	if (p.kind === "graph") {
		const edges = new Map(
			each(p.edges, ([value, other, level = p.epsilon]) => {
				const places = [value, other].map(domain.place).sort((a, b) => a - b)
				return [
					places[0] < 0 ? refuse("edges", "join values of the domain", [value, other]) : `${places}`,
					readLevel(level),
				]
			}),
		)
		return {
			classOf: (x) => x,
			limit: (x, other) => edges.get(`${[Math.min(x, other), Math.max(x, other)]}`) ?? Infinity,
		}
	}
	const epsilon = readLevel(p.epsilon)
	if (p.kind === "uniform") return { classOf: () => 0, limit: () => epsilon }
	if (p.kind === "high-low") {
		const places = new Set(each(p.sensitive, (value) => domain.place(value)))
		if (places.has(-1)) refuse("sensitive", "be values of the domain", p.sensitive)
		return { classOf: (x) => places.has(x), limit: (x) => (places.has(x) ? epsilon : Infinity) }
	}
	if (p.kind === "metric") {
		const distance = distanceOf(p.distance, document)
		return { classOf: (x) => x, limit: (x, other) => epsilon * distance(x, other) || 0 }
	}
	if (p.kind === "secret") {
		const secretOf = factorOf(domain, p.secret)
		return { classOf: secretOf, limit: (x, other) => (secretOf(x) === secretOf(other) ? Infinity : epsilon) }
	}
	if (p.kind !== "prior") refuse("the kind of the policy", "be one that this module knows", p.kind, "UnknownSpec")
}

/** The document of the policy of an attribute. @param {any} domain @param {any} p @param {string} name */
const attribute = (domain, p, name) => ({
	domain: domain.product[name],
	policy: p.attributes?.[name] ?? refuse("attributes", "have a policy per attribute", name),
})

/**
 * @param {Mechanism} mechanism
 * @param {Limits} limits
 * @returns {[number, number, number] | undefined} two values and a ratio above their limit
 */
function broken({ domain, law }, { classOf, limit, of }) {
	const { sizes = [] } = domain
	// Limits that add up over attributes hold if every component obeys those of its attributes.
	if (of && law.components?.every(({ axes, size }) => axes.reduce((a, axis) => a * sizes[axis], 1) === size)) {
		for (const {
			axes,
			size,
			law: { ratio },
		} of law.components)
			for (let x = 0; x < size; x++)
				for (let other = 0; other < size; other++) {
					const own = axes.map((axis) => sizes[axis]),
						most = x === other ? Infinity : of(axes, [digitsOf(own, x), digitsOf(own, other)])
					if (!(ratio(x, other) <= most + TOLERANCE)) return [x, other, ratio(x, other)]
				}
		return
	}
	const { chosen } = representatives(domain.size, law.classOf, classOf)
	for (const x of chosen)
		for (const other of chosen) {
			// Negated, so that NaN counts as a violation.
			if (x !== other && !(law.ratio(x, other) <= limit(x, other) + TOLERANCE)) return [x, other, law.ratio(x, other)]
		}
}

/** Probabilities that sum to at most one. @param {any} list */
function sharesOf(list, n = 0) {
	const shares = each(list, readLevel, n)
	return shares.every((share) => share >= 0) && total(shares) <= 1 + TOLERANCE
		? shares
		: refuse("probabilities", "be at least 0 and sum to at most 1", list)
}

/**
 * Extreme distributions of the other attribute per secret; of an estimated region, its centre.
 * @param {any} distributions
 * @returns {number[][][]}
 */
function restOf({ known, "at-least": shares, "chi-square": estimated }, s = 0, n = 0) {
	return each(
		known ?? shares ?? estimated?.counts,
		(list) => {
			const row = estimated ? each(list, (count) => number(count, 2 ** 53), n) : sharesOf(list, n),
				all = total(row),
				one = row.map((_, u) => row.map((_, v) => +(u === v)))
			if (shares) return one.map((corner) => corner.map((unit, u) => row[u] + unit * (1 - all)))
			// A secret that never occurs has every known distribution, and no estimated one.
			return all ? [row.map((p) => p / all)] : known ? one : []
		},
		s,
	)
}

/** Throws PolicyViolated if a mechanism violates a policy.
 * @param {Mechanism} mechanism @param {any} document @returns {boolean} whether it is proved to obey */
function obeys(mechanism, document) {
	const { domain, law } = mechanism,
		{ policy: p } = document,
		limits = limitsOf(document, domain),
		epsilon = readLevel([p.epsilon ?? "inf"].flat()[0])
	const violated = (/** @type {number} */ ratio, where = "") =>
		refuse(
			"the mechanism",
			`obey the ${p.kind} policy${where}`,
			`a likelihood ratio of e^${+ratio.toFixed(9)}`,
			"PolicyViolated",
		)
	const unverified = () =>
		refuse("the mechanism", `be comparable with the ${p.kind} policy`, "another", "PolicyViolated")
	const anything = p.kind !== "secret" || p.distributions.anything
	const violation = broken(mechanism, limits ?? { classOf: () => 0, limit: () => epsilon })
	if (!violation) return true
	if (limits && anything) violated(violation[2], ` between values ${violation[0]} and ${violation[1]}`)
	if (p.kind === "prior") {
		const [upper, lower] = law.against?.(sharesOf(p.prior, domain.size)) ?? []
		if (upper === undefined || lower === undefined) return unverified()
		const worst = Math.max(p.side === "lower" ? 0 : upper, p.side === "upper" ? 0 : lower)
		return worst <= epsilon + TOLERANCE || violated(worst)
	}
	const secretOf = factorOf(domain, p.secret),
		cells = /** @type {number[][]} */ ([])
	for (let x = 0; x < domain.size; x++) (cells[secretOf(x)] ??= []).push(x)
	const laws = restOf(p.distributions, cells.length, cells[0].length),
		columns = law.columns?.()
	if (!columns) return unverified()
	for (const column of columns) {
		const bounds = cells.map((members, s) => {
			const sums = laws[s].map((law) => total(law.map((p, u) => p * column[members[u]])))
			return [most(sums), least(sums)]
		})
		bounds.forEach(([high], s) =>
			bounds.forEach(([, low], other) => {
				if (s !== other && high && !(Math.log(high / low) <= epsilon + TOLERANCE)) violated(Math.log(high / low))
			}),
		)
	}
	return !p.distributions["chi-square"]
}

/** The odds of the best guess of one of `size` values from a report, and without one. @param {Fraction} greatest */
function oddsOf([n, d], size = 0) {
	const all = d * BigInt(size)
	// 1 only if it is exactly 1.
	return { guess: n === all ? 1 : Math.min(Number((n << 80n) / all) / 2 ** 80, 1 - 2 ** -53), chance: 1 / size }
}

/**
 * The odds of the attributes that reports are about; of several at once together, unless all have two values.
 * @param {Law} law
 * @param {number[]} sizes
 * @returns {{ guess: number, chance: number }[]}
 */
function oddsOfParts({ components, attributes }, sizes) {
	if (components)
		return components.flatMap(({ axes, size, law }) => {
			const inner = oddsOfParts(
				law,
				axes.map((axis) => sizes[axis]),
			)
			return inner.length ? inner : [oddsOf(law.greatest, size)]
		})
	return sizes.every((size) => size === 2) ? (attributes?.(sizes) ?? []).map((greatest) => oddsOf(greatest, 2)) : []
}

/** The share of the way from a guess without a report to certainty. @param {{ guess: number, chance: number }} odds */
const closes = ({ guess, chance }) => (chance === 1 ? 0 : (guess - chance) / (1 - chance))

/** Computes what reports reveal; throws PolicyViolated if the mechanism violates the policy.
 * @param {Mechanism} mechanism @param {any} document of the policy @returns {Disclosure} */
export function disclose(mechanism, document) {
	const {
			domain: { size, sizes = [] },
			law,
			memory,
		} = mechanism,
		parts = oddsOfParts(law, law.components || document.domain.product ? sizes : [])
	const lifetime =
		memory && disclose({ ...mechanism, law: memory.law, memory: undefined }, { ...document, policy: memory.lifetime })
	return {
		...oddsOf(law.greatest, size),
		part: parts.length
			? parts.reduce((sharpest, part) => (closes(part) > closes(sharpest) ? part : sharpest))
			: undefined,
		proved: obeys(mechanism, document) && lifetime?.proved !== false,
		lifetime,
		levels(groupOf = () => 0, same = true) {
			const { chosen, of } = representatives(size, law.classOf, groupOf),
				levels = new Map(),
				groups = new Map()
			for (const x of chosen) groups.set(groupOf(x), [...(groups.get(groupOf(x)) ?? []), x])
			for (const x of chosen) {
				let level = 0
				for (const other of same ? groups.get(groupOf(x)) : chosen) {
					if (other !== x && (same || groupOf(other) !== groupOf(x))) level = Math.max(level, law.ratio(x, other))
					if (level === Infinity) break
				}
				levels.set(of(x), level)
			}
			return indices(size).map((x) => levels.get(of(x)))
		},
		after: (before, level) => before / (before + (1 - before) * Math.exp(-level)),
		beliefs(before) {
			const { kind, prior: list } = document.policy,
				prior = kind === "prior" && sharesOf(list, size)
			const [upper] = (prior && law.against?.(prior)) || [Infinity]
			return this.levels().map((level, x) => {
				const belief = prior ? prior[x] : before
				return [belief, belief && Math.min(this.after(belief, level), belief * Math.exp(upper), 1)]
			})
		},
	}
}

/** Returns the bytes of a report. @param {Mechanism} mechanism @param {bigint} report */
export const serialise = ({ bits }, report) =>
	Uint8Array.from(indices(Math.ceil(bits / 8)), (i) => Number(BigInt.asUintN(8, report >> BigInt(8 * i))))

/** Decisions from secure random bits. @param {Layout} layout */
const secureDraws = (layout) =>
	bitDraws(
		(width) => BigInt.asUintN(width, BigInt(`0x${hex(randomBytes(8))}`)),
		layout,
		randomBytes(layout.frame_bits / 8),
	)

/** Draws a report of the value with index x. @param {Mechanism} mechanism @param {number} x */
export const privatize = (mechanism, x) => mechanism.sample(x, secureDraws(mechanism.layoutOf(x)))

/**
 * Reads all records, and stores the one that `change` returns; resolves when it is on disk.
 * @param {(all: any[]) => any} [change]
 * @returns {Promise<any>}
 */
const records = (change) =>
	new Promise((resolve, reject) => {
		const opening = indexedDB.open("sfumato", 1)
		opening.onupgradeneeded = () => opening.result.createObjectStore("answers", { keyPath: "collection" })
		opening.onerror = () => reject(opening.error)
		opening.onsuccess = () => {
			const database = opening.result
			/** @type {IDBTransaction} */
			let transaction
			try {
				transaction = database.transaction("answers", "readwrite", { durability: "strict" })
			} catch (error) {
				return (database.close(), reject(error))
			}
			const store = transaction.objectStore("answers"),
				request = store.getAll()
			request.onsuccess = () => {
				const changed = change?.(request.result)
				if (changed) store.put(changed)
				transaction.oncomplete = () => (database.close(), resolve(changed ?? request.result))
			}
			transaction.onabort = () => (database.close(), reject(transaction.error))
		}
	})

/** All answers of this browser profile. @returns {Promise<Answer[]>} */
export const answers = () => records()

/** Sends the waiting answers; resolves to the number still waiting. @returns {Promise<number>} */
export const flush = async () =>
	await alone(async () => {
		let waiting = 0
		for (const one of await answers()) {
			if (one.state !== "waiting") continue
			try {
				const problem = (await ask(one, true)) ?? (await ask(one))
				const outcome = problem ? { state: "refused", problem } : { state: "sent" }
				await records((all) => ({
					...all.find((known) => known.collection === one.collection),
					token: undefined,
					...outcome,
				}))
			} catch {
				waiting++
			}
		}
		clearTimeout(timer)
		if (waiting) timer = setTimeout(soon, 2e4)
		return waiting
	})

/**
 * Sends an answer, or asks whether it would be accepted, without its report; resolves to its rejection, if it is
 * rejected.
 * @param {any} answer
 * @returns {Promise<Problem | undefined>}
 */
async function ask({ collection, batch, report, token, wave }, isQuestion = false) {
	const address = collection.split("#")[0],
		headers = {
			"Content-Type": "application/json",
			"Idempotency-Key": batch,
			...(token && { Authorization: `Bearer ${token}` }),
		}
	const [path, sent] = isQuestion
		? [`admission${wave === undefined ? "" : `?wave=${wave}`}`]
		: [
				"reports",
				{
					method: "POST",
					body: `{"batch":"${batch}",${wave === undefined ? "" : `"wave":${wave},`}"report":${report}}`,
				},
			]
	const response = await fetch(`${address}/${path}`, {
		...sent,
		headers,
		signal: AbortSignal.timeout(3e4),
		credentials: "omit",
	})
	const { batch: counted, error } = await response.json()
	// Only a rejection that names this batch and its collection comes from the collector: a proxy may answer in its
	// place, with any JSON.
	const rejected = error?.batch === batch && address.endsWith(`/${error.collection}`)
	if (/408|429|5../.test(`${response.status}`) || (counted !== batch && !rejected)) throw error
	return rejected ? error : undefined
}

/**
 * Runs work in one tab at a time; without Web Locks two tabs may send the same batch, which the collector counts once.
 * @param {() => Promise<number>} work
 * @returns {Promise<number>}
 */
const alone = async (work) => (navigator.locks ? await navigator.locks.request("sfumato", work) : await work())

let timer = 0
const soon = () => void flush().catch(() => 0)

/**
 * Opens the collection at an address; `start` is the begin of the hash of its mechanism, from a link.
 * @param {string} address
 * @returns {Promise<Collection>}
 */
export async function openCollection(address, start = "") {
	const url = new URL(address, location.href).href
	const response = await fetch(url, { credentials: "omit" }),
		json = await response.text()
	if (!response.ok) refuse("the collection", "exist at this address", json, "NotFound")
	const document = JSON.parse(json),
		{ smechanism, spolicy } = marked(json)
	const { id, state, submission, mechanism_hash, title, previous, waves } = document
	// Answers are stored by address: another spelling of it would allow a second draw.
	if (/[%?#]/.test(url) || !url.endsWith(`/v1/collections/${id}`))
		refuse("the address", `end in /v1/collections/${id}`, url)
	const hash = await digest(canonical(smechanism))
	if (hash !== mechanism_hash) refuse("mechanism_hash", `be ${hash}`, mechanism_hash, "HashMismatch")
	if (!hash.startsWith(start)) refuse("mechanism_hash", `begin with ${start}, as in the link`, hash, "HashMismatch")
	if (canonical(smechanism.sdomain) !== canonical(spolicy.sdomain))
		refuse("the policy", "have the mechanism's domain", document.policy.domain)
	const mechanism = readMechanism(document.mechanism),
		{ domain, encoding, memory } = mechanism,
		wave = waves?.current ?? undefined
	if (waves && !memory)
		refuse("the mechanism", "be memoized, because the collection has waves", document.mechanism.mechanism)
	const version = versionBefore({ id, url, previous }),
		question = questionOf(title)
	/** The answer to this collection. @param {any[]} all @returns {Answer | undefined} */
	const current = (all) => all.find(({ collection }) => collection === (waves ? `${url}#${wave}` : url))
	/** Whether another collection or version asks the same question. */
	const same = (collection = "", title = "", before = "") =>
		collection !== url && ((question && title === question) || collection === version || before === url)
	const values = `{"domain":${canonical(spolicy.sdomain)},`
	/** Answers to the same question about the same values. @param {any[]} all @returns {Answer[]} */
	const related = (all) =>
		all.filter(
			(known) =>
				same(known.collection.split("#")[0], known.question, known.previous) && known.policy.startsWith(values),
		)
	/**
	 * The answer to the same question by the same mechanism; every wave draws a new report.
	 * @param {any[]} all
	 * @returns {Answer | undefined}
	 */
	const reusable = (all) => (waves ? undefined : related(all).find((known) => known.mechanism === hash && known.report))
	/** The part of a record that does not depend on the report. */
	const about = { collection: url, mechanism: hash, policy: canonical(spolicy), question, previous: version }
	/** The report as it is sent. */
	const written = (report = 0n) => (encoding === "index" ? `${report}` : `"${hex(serialise(mechanism, report))}"`)
	/**
	 * Permanent answers to this question; collections that ask it at other times, on a schedule, share none.
	 * @param {any[]} all
	 * @returns {Kept[]}
	 */
	const kept = (all) =>
		all
			.filter(
				(known) =>
					known.kept &&
					known.mechanism === hash &&
					(known.collection === url || (!memory?.every && related([known]).length)),
			)
			.flatMap((known) => known.kept)
	/** Greatest number of permanent answers; the first one fixes it. @param {any[]} all */
	const most = (all) =>
		all.find(({ collection }) => collection === url)?.most ??
		Math.min(memory?.most ?? 1, memory?.every ? Math.ceil(waves.count / memory.every) : Infinity)

	/**
	 * Asks whether a reply would be counted now; undefined if it would, or if the collector cannot be reached. A reply is
	 * asked about again before it is sent.
	 * @param {string} [token]
	 */
	const refusal = async (token, batch = hex(randomBytes(16))) =>
		await ask({ collection: url, batch, token, wave }, true).catch(() => undefined)

	/**
	 * Returns the permanent answer that the report of this wave is about. Stores a new one before it returns.
	 * @param {Memory} memory
	 */
	async function permanentAnswer({ every, keyOf, draw }, x = 0) {
		for (;;) {
			const all = await records(),
				known = kept(all),
				earlier = known.length ? BigInt(known[0].answer) : undefined
			const keyed = (/** @type {bigint} */ first, salt = "") =>
				digest(
					JSON.stringify([salt, every ? "time" : "value", every ? Math.floor((wave ?? 0) / every) : keyOf(x, first)]),
				)
			for (const one of known) if (one.key === (await keyed(earlier ?? 0n, one.salt))) return one
			if (known.length >= most(all)) {
				// A device that falls silent would reveal the change: it keeps answering about the last answer that it reported
				// about.
				const last = all
					.filter(
						(/** @type {Answer} */ record) => record.wave !== undefined && record.collection.startsWith(`${url}#`),
					)
					.sort((/** @type {any} */ a, /** @type {any} */ b) => b.wave - a.wave)[0]
				return known.find(({ key }) => key === last?.about) ?? known[known.length - 1]
			}
			const answer = draw(x, secureDraws(mechanism.layoutOf(x)), earlier),
				salt = hex(randomBytes(16)),
				key = await keyed(earlier ?? answer, salt)
			// Another tab may have stored an answer since: then this one is dropped, and the search starts over.
			await records((all) =>
				kept(all).length === known.length
					? {
							...about,
							policy: `${values}"policy":${canonical(smechanism.sparameters.slifetime)}}`,
							state: "kept",
							most: most(all),
							kept: [
								...(all.find(({ collection }) => collection === url)?.kept ?? []),
								{ salt, key, answer: `${answer}` },
							],
						}
					: undefined,
			)
		}
	}

	return {
		...document,
		url,
		domain,
		disclosure: disclose(mechanism, document.policy),
		most: waves && most(await records().catch(() => [])),
		answered: async () => current(await records()),
		refusal: async (token) => await refusal(token),
		remembered: async () => reusable(await records()),
		drawnAgain: async () =>
			!reusable(await records()) &&
			related(await records()).some((known) => !waves || known.mechanism !== hash || memory?.every),
		asksAs: (other) => other.mechanism_hash === hash && same(other.url, questionOf(other.title), versionBefore(other)),
		async answer(value, token) {
			const before = await records(),
				x = domain.place(value),
				wrong = () => refuse("the value", "be a value of the domain", value)
			if (waves && wave === undefined) refuse("the collection", "have a current wave", waves.current, "NotOpen")
			// Permanent answers of another mechanism would add up with those of earlier waves, at levels that the collector
			// chooses.
			const earlier = before.find(
				(/** @type {Answer} */ known) => known.collection === url || known.collection.startsWith(`${url}#`),
			)
			if (waves && earlier && earlier.mechanism !== hash)
				refuse("mechanism_hash", `be ${earlier.mechanism}, as in earlier waves`, hash, "HashMismatch")
			if (x < 0 && (value !== undefined || !(current(before) ?? reusable(before)))) wrong()
			if (!current(before)) {
				if (state !== "open") refuse("the collection", "be open for answers", state, "NotOpen")
				if (submission !== "open" && !token)
					refuse("token", "be the collection's key or one-time token", token, "TokenNeeded")
				const problem = await refusal(token)
				if (problem) refuse("the collector", "accept a reply", problem.reason, "Refused")
			}
			let repeated = true
			const permanent = wave !== undefined && memory && !current(before) ? await permanentAnswer(memory, x) : undefined
			const answer = await records((all) => {
				// A stored report is sent whatever the value is: a second draw would be a second release.
				const known = current(all),
					stored = reusable(all)
				if (known) return known.state === "refused" && token ? { ...known, token, state: "waiting" } : known
				repeated = !!stored
				const batch = hex(randomBytes(16)),
					waiting = { ...about, batch, token, state: "waiting" }
				if (permanent && memory)
					return {
						...waiting,
						collection: `${url}#${wave}`,
						wave,
						about: permanent.key,
						report: written(memory.report(BigInt(permanent.answer), secureDraws(mechanism.layoutOf(x)))),
					}
				const report = stored?.report ?? written(x < 0 ? wrong() : privatize(mechanism, x))
				return { ...waiting, report, drawn: stored && (stored.drawn ?? stored.collection) }
			})
			soon()
			return { ...answer, repeated }
		},
	}
}

/** The address of the previous version. @param {{ id: string, url: string, previous?: string | null }} collection */
const versionBefore = ({ id, url, previous }) => (previous ? url.slice(0, -id.length) + previous : undefined)

/** Titles that differ only in case or spacing ask the same question. @param {any} title */
const questionOf = (title) =>
	String(title ?? "")
		.normalize("NFKC")
		.replace(/\s+/g, " ")
		.trim()
		.toLowerCase()

// Outside a browser the module stores and sends nothing.
if (globalThis.location) {
	// A page that tells people what plain HTTP lacks may set this before it loads the module.
	if (!isSecureContext && !(/** @type {any} */ (globalThis).sfumatoPlainHttp))
		refuse("the page", "be loaded over https", location.origin, "InsecurePage")
	addEventListener("online", soon)
	soon()
}
